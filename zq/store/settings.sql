-- Statements that read alike in both stores.

-- name: set_queue
INSERT INTO queue_settings (queue, settings, checksum) VALUES (:queue, :settings::json, :checksum)
ON CONFLICT (queue) DO UPDATE SET settings = excluded.settings, checksum = excluded.checksum

-- name: unset_queue
DELETE FROM queue_settings WHERE queue = :queue

-- name: clear_settings
DELETE FROM queue_settings

-- name: forget_rate
DELETE FROM queue_rates WHERE queue = :queue

-- name: clear_rates
DELETE FROM queue_rates
