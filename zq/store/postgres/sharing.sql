-- The statements of servers that share a database.

-- name: begin_tick
SELECT begin_tick(:known::bigint, :beside::boolean)

-- name: note_memory
UPDATE memory SET version = :version

-- name: tell
-- :ended lists [slot, holder, key, revoked, lapsed].
INSERT INTO mail (slot, holder, job_id, revoked, lapsed)
SELECT * FROM unnest(:ended.0::smallint[], :ended.1::bigint[], :ended.2::bigint[],
    :ended.3::boolean[], :ended.4::boolean[])

-- name: lock_keys
-- For the transaction, in an order that is the same for all.
SELECT count(pg_advisory_xact_lock({key_class}, number)) FROM (
    SELECT DISTINCT hashtext(name) AS number FROM unnest(:names::text[]) AS n (name)
    ORDER BY number OFFSET 0) AS numbers

-- name: read_servers
SELECT slot, start, steady + (extract(epoch FROM clock_timestamp() - beat) * 1000)::bigint
FROM servers ORDER BY slot

-- name: lock_slot
-- Its lock for the transaction, if it is free.
SELECT pg_try_advisory_xact_lock({lock_class}, :slot)

-- name: enter_server
INSERT INTO servers (slot, start, name, steady) VALUES (:slot, :start, :name, :steady)
ON CONFLICT (slot) DO UPDATE SET start = excluded.start, name = excluded.name,
    steady = excluded.steady, started = clock_timestamp(), beat = clock_timestamp(),
    is_hungry = false, postmaster = excluded.postmaster

-- name: forget_servers
DELETE FROM servers WHERE slot = ANY (:slots::smallint[])

-- name: forget_mail
DELETE FROM mail WHERE slot = ANY (:slots::smallint[])

-- name: forget_ticks
-- Those of starts that have ended: nobody asks for their outcome any more.
DELETE FROM ticks WHERE start NOT IN (SELECT start FROM servers)

-- name: count_claimed_by_claimants
SELECT count(*) FROM jobs WHERE status = {in_flight} AND status <> {ready} AND holder = 0

-- name: beat
UPDATE servers SET beat = clock_timestamp(), steady = :steady, is_hungry = :is_hungry::boolean
WHERE slot = :slot AND start = :start

-- name: note_hunger
UPDATE servers SET is_hungry = true WHERE slot = :slot AND start = :start

-- name: tell_others
-- Those that wait for jobs, or have mail.
SELECT pg_notify(:channel::text || slot, '') FROM servers
WHERE slot <> :slot
    AND (is_hungry OR EXISTS (SELECT 1 FROM mail WHERE mail.slot = servers.slot OFFSET 0))

-- name: other_servers
-- Each of the other servers: for how long its heart has not beaten, if its ticks' connection has the lock
-- of its slot, and if it has any other connection that watches.
WITH held AS (
    SELECT objid FROM pg_locks
    WHERE locktype = 'advisory' AND classid = {lock_class} AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
SELECT slot, start, extract(epoch FROM clock_timestamp() - beat)::float8,
    EXISTS (SELECT 1 FROM held WHERE objid = slot),
    EXISTS (SELECT 1 FROM held WHERE objid = slot + {watched})
FROM servers WHERE slot <> :slot

-- name: end_server
-- Ends the connections of a slot.
SELECT count(pg_terminate_backend(pid)) FROM pg_locks
WHERE locktype = 'advisory' AND classid = {lock_class} AND objsubid = 2 AND granted
    AND objid IN (:slot::bigint, :slot::bigint + {watched})
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: read_mail
SELECT id, holder, job_id, revoked, lapsed FROM mail WHERE slot = :slot ORDER BY id LIMIT :limit

-- name: drop_mail
DELETE FROM mail WHERE slot = :slot AND id <= :upto
