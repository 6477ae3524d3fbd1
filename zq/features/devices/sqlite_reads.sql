-- Devices as readers see them. ORDERED stands for an order. A device is heard of by its reports and by its jobs:
-- its producers have its name, a slash, and the names of its lanes.

-- name: devices
SELECT json_group_array(json_array(json_array(name, instance, version, every_ms, clock_ms, reported_at, since, jobs,
    bytes, oldest_ms, json(lanes)), seen_at))
FROM (
    SELECT *, max(reported_at, ifnull((
        SELECT max(at) FROM producers
        WHERE producers.name > devices.name || '/' AND producers.name < devices.name || '0'), 0)) AS seen_at
    FROM devices WHERE :device IS NULL OR name = :device
    ORDER BY ORDERED LIMIT :limit OFFSET :skip)

-- name: device_sums
SELECT count(*), total(:now - seen_at > :silent_after * every_ms), total(oldest_ms >= :behind_ms),
    total(abs(clock_ms) >= :clock_ms), total(jobs), total(bytes)
FROM (
    SELECT *, max(reported_at, ifnull((
        SELECT max(at) FROM producers
        WHERE producers.name > devices.name || '/' AND producers.name < devices.name || '0'), 0)) AS seen_at
    FROM devices)

-- name: devices_named
-- Devices whose names are this one, or begin with it if it has a star at its end.
SELECT json_group_array(name) FROM (
    SELECT name FROM devices
    WHERE iif(:is_fleet, substr(name, 1, length(:beginning)) = :beginning, name = :beginning) ORDER BY name)
