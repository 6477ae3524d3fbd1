-- Entries that cannot be read.

-- name: cron
SELECT job, checksum FROM cron_entries WHERE cron = :cron AND name = :name
