-- Statements that read alike in both stores.

-- name: count_devices
SELECT count(*) FROM devices

-- name: delete_device
DELETE FROM devices WHERE name = :device
