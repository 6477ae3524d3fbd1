-- Devices as readers see them. ORDERED stands for an order. A device is heard of by its reports and by
-- its jobs: its producers have its name, a slash, and the names of its lanes.

-- name: devices
SELECT json_build_array(name, instance, version, every_ms, clock_ms, reported_at, since, jobs, bytes,
    oldest_ms, lanes), seen_at
FROM (
    SELECT *, greatest(reported_at, (
        SELECT max(at) FROM producers
        WHERE producers.name > devices.name || '/' AND producers.name < devices.name || '0')) AS seen_at
    FROM devices WHERE :device::text IS NULL OR name = :device::text) AS seen
ORDER BY ORDERED LIMIT :limit OFFSET :skip

-- name: device_sums
SELECT count(*), count(*) FILTER (WHERE :now::bigint - seen_at > :silent_after::float8 * every_ms),
    count(*) FILTER (WHERE oldest_ms >= :behind_ms),
    count(*) FILTER (WHERE abs(clock_ms) >= :clock_ms),
    coalesce(sum(jobs), 0)::bigint, coalesce(sum(bytes), 0)::bigint
FROM (
    SELECT *, greatest(reported_at, (
        SELECT max(at) FROM producers
        WHERE producers.name > devices.name || '/' AND producers.name < devices.name || '0')) AS seen_at
    FROM devices) AS seen

-- name: devices_named
-- Devices whose names are this one, or begin with it if it has a star at its end.
SELECT name FROM devices
WHERE CASE :is_fleet::integer WHEN 1 THEN starts_with(name, :beginning::text)
    ELSE name = :beginning::text END
ORDER BY name
