-- The settings of queues, and the kept counts that gates need.

-- name: read_settings
SELECT json_group_array(json_array(queue, json(settings))) FROM queue_settings

-- name: read_ended_pauses
SELECT json_group_array(queue) FROM (
    SELECT queue FROM queue_settings
    WHERE paused_until IS NOT NULL AND paused_until <= :now
    LIMIT :limit)

-- name: read_depths
SELECT json_group_array(json_array(queue, n)) FROM (
    SELECT queue, sum(n) AS n FROM queue_counts
    WHERE queue IN (SELECT value FROM json_each(:queues)) AND status <= {in_flight} GROUP BY queue)

-- name: read_in_flight
SELECT json_group_array(json_array(queue, n)) FROM queue_counts
WHERE queue IN (SELECT value FROM json_each(:queues)) AND status = {in_flight}

-- name: read_rates
SELECT json_group_array(json_array(queue, level, at)) FROM queue_rates
WHERE queue IN (SELECT value FROM json_each(:queues))

-- name: write_rates
-- :rates lists [queue, level, at].
INSERT INTO queue_rates (queue, level, at)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rates) WHERE true
ON CONFLICT (queue) DO UPDATE SET level = excluded.level, at = excluded.at
