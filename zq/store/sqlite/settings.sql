-- The settings of queues, and the kept counts that gates need.

-- name: read_settings
SELECT json_group_array(json_array(queue, json(settings))) FROM queue_settings

-- name: set_queue
INSERT INTO queue_settings (queue, settings) VALUES (:queue, :settings)
ON CONFLICT (queue) DO UPDATE SET settings = excluded.settings

-- name: unset_queue
DELETE FROM queue_settings WHERE queue = :queue

-- name: clear_settings
DELETE FROM queue_settings

-- name: read_depths
SELECT json_group_array(json_array(queue, n)) FROM (
    SELECT queue, sum(n) AS n FROM queue_counts
    WHERE queue IN (SELECT value FROM json_each(:queues)) AND status <= {in_flight} GROUP BY queue)

-- name: read_in_flight
SELECT json_group_array(json_array(queue, n)) FROM queue_counts
WHERE queue IN (SELECT value FROM json_each(:queues)) AND status = {in_flight}
