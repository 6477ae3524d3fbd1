-- Statements that read alike in both stores.

-- name: next_firing
SELECT next_at FROM cron_entries WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1

-- name: write_cron_group
INSERT INTO cron_groups (name, timezone, paused, paused_at, resumed_at)
VALUES (:cron, :timezone, :paused, :paused_at, :resumed_at)
ON CONFLICT (name) DO UPDATE SET timezone = excluded.timezone, paused = excluded.paused,
    paused_at = excluded.paused_at, resumed_at = excluded.resumed_at

-- name: delete_cron
DELETE FROM cron_entries WHERE cron = :cron AND name = :entry

-- name: clear_crons
DELETE FROM cron_entries

-- name: clear_cron_groups
DELETE FROM cron_groups
