-- Entries that cannot be read.

-- name: cron
SELECT job, checksum FROM cron_entries WHERE cron = :cron AND name = :name

-- name: cron_entries
SELECT cron, name, CAST(job AS BLOB), checksum FROM cron_entries WHERE checksum IS NOT NULL
