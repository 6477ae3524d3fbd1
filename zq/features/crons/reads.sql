-- Statements that read alike in both stores.

-- name: group
SELECT name, timezone, paused, paused_at, resumed_at FROM cron_groups WHERE name = :cron

-- name: count
SELECT count(*) FROM cron_entries
