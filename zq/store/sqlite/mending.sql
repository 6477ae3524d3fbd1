-- Mending the tables beside those of jobs, after damage. The statements look at every row.

-- name: tables
SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name

-- name: table
SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = :name

-- name: keys
SELECT source, key FROM quarantine

-- name: noted
-- What was set aside or noted at one time.
SELECT source, key, reason, at FROM quarantine WHERE at = :now

-- name: logs
SELECT id, CAST(name AS BLOB), min_seq, max_seq, bytes, max_age_ms, max_records, max_bytes FROM logs

-- name: records
SELECT min(last_seq - count) + 1, ifnull(max(last_seq), 0), ifnull(sum(length(body) + length(shared)), 0)
FROM log_batches WHERE log = :log

-- name: put_log
INSERT OR REPLACE INTO logs (id, name, min_seq, max_seq, bytes)
VALUES (:id, :name, :min_seq, :max_seq, :bytes)

-- name: forget_counts
DELETE FROM queue_counts

-- name: astray
-- Jobs whose line is lost, or is another one than their rows name, after damage.
SELECT json_group_array(jobs.id) FROM jobs LEFT JOIN lines ON lines.id = jobs.line
WHERE jobs.line IS NOT NULL AND (lines.id IS NULL OR {misnamed})

-- name: misnamed
-- Lines that are not those of their jobs.
SELECT json_group_array(DISTINCT lines.id) FROM jobs JOIN lines ON lines.id = jobs.line
WHERE {misnamed}

-- name: ahead
-- How far steady time is ahead of the wall, as it was noted last.
SELECT ifnull((SELECT value ->> 0 FROM meta WHERE name = 'clock' AND json_valid(value)), 0)

-- name: place_astray
-- A line that shares its queue comes first until a job of its key moves.
UPDATE lines SET place = 0.0 WHERE head IS NOT NULL AND place IS NULL

-- name: open_every_line
UPDATE lines SET shut_by = NULL, shut_cost = NULL WHERE shut_by IS NOT NULL
