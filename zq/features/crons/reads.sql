-- Statements that read alike in both stores.

-- name: group
SELECT name, timezone, paused, paused_at, resumed_at FROM cron_groups WHERE name = :cron

-- name: states
-- The entries of a group without their jobs.
SELECT name, expression, timezone, paused, paused_at, resumed_at, next_at, last_at, timed_at
FROM cron_entries WHERE cron = :cron ORDER BY name

-- name: count
SELECT count(*) FROM cron_entries
