-- Statements that read alike in both stores.

-- name: some_devices
-- How many devices have reported not long ago, up to :most.
SELECT count(*) FROM (
    SELECT 1 FROM devices
    WHERE reported_at >= :now::bigint - :silent_after::float8 * every_ms LIMIT :most) AS few
