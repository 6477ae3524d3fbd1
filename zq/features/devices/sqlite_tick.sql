-- Devices, as they have reported themselves.

-- name: read_devices
SELECT json_group_array(json_array(name, instance, version, every_ms, clock_ms, reported_at, since, jobs, bytes,
    oldest_ms, json(lanes)))
FROM devices WHERE name IN (SELECT value FROM json_each(:names))

-- name: write_devices
INSERT OR REPLACE INTO devices
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value -> 10
FROM json_each(:devices)

-- name: read_addressees
-- :names lists devices. Each that is known, and whether it has a lane.
SELECT json_group_array(json_array(name, EXISTS (SELECT 1 FROM lanes WHERE lanes.name = 'to:' || devices.name)))
FROM devices WHERE name IN (SELECT value FROM json_each(:names))
