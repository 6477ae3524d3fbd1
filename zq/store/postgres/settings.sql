-- The settings of queues, and the kept counts that gates need.

-- name: read_settings
SELECT queue, settings::text FROM queue_settings

-- name: read_ended_pauses
SELECT queue FROM queue_settings
WHERE paused_until IS NOT NULL AND paused_until <= :now
LIMIT :limit

-- name: read_depths
SELECT queue, sum(n)::bigint FROM queue_totals
WHERE queue = ANY (:queues::text[]) AND status <= {in_flight} GROUP BY queue

-- name: read_in_flight
SELECT queue, n FROM queue_totals WHERE queue = ANY (:queues::text[]) AND status = {in_flight}

-- name: read_rates
SELECT queue, level, at FROM queue_rates WHERE queue = ANY (:queues::text[])

-- name: write_rates
-- :rates lists [queue, level, at].
INSERT INTO queue_rates (queue, level, at)
SELECT * FROM unnest(:rates.0::text[], :rates.1::float8[], :rates.2::bigint[])
ON CONFLICT (queue) DO UPDATE SET level = excluded.level, at = excluded.at
