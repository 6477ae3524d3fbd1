-- Devices, as they have reported themselves.

-- name: read_devices
SELECT name, instance, version, every_ms, clock_ms, reported_at, since, jobs, bytes, oldest_ms, lanes
FROM devices WHERE name = ANY (:names::text[])

-- name: write_devices
INSERT INTO devices
SELECT * FROM unnest(:devices.0::text[], :devices.1::text[], :devices.2::text[], :devices.3::bigint[],
    :devices.4::bigint[], :devices.5::bigint[], :devices.6::bigint[], :devices.7::bigint[],
    :devices.8::bigint[], :devices.9::bigint[], :devices.10::json[])
ON CONFLICT (name) DO UPDATE SET instance = excluded.instance, version = excluded.version,
    every_ms = excluded.every_ms, clock_ms = excluded.clock_ms, reported_at = excluded.reported_at,
    since = excluded.since, jobs = excluded.jobs, bytes = excluded.bytes,
    oldest_ms = excluded.oldest_ms, lanes = excluded.lanes

-- name: read_addressees
-- :names lists devices. Each that is known, and whether it has a lane.
SELECT name, EXISTS (SELECT 1 FROM lanes WHERE lanes.name = 'to:' || devices.name OFFSET 0)
FROM devices WHERE name = ANY (:names::text[])
