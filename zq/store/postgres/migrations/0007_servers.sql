-- The servers that have this database: one, or several that share it. Each has a slot, which its ids and the
-- holders of its jobs carry. Its connection of ticks has the lock of the slot, so a row without that lock is
-- of a server that has died.

CREATE TABLE servers (
    slot     smallint PRIMARY KEY CHECK (slot BETWEEN 0 AND 15),
    start    bigint NOT NULL, -- counted in meta
    name     text NOT NULL,
    started  timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat     timestamptz NOT NULL DEFAULT clock_timestamp(),
    steady   bigint NOT NULL -- its steady time at that beat
) WITH (fillfactor = 50);

-- Leases that a tick of another server has ended: the server of this slot has them in its memory.
CREATE TABLE mail (
    slot     smallint NOT NULL,
    id       bigint GENERATED ALWAYS AS IDENTITY,
    holder   bigint NOT NULL,
    job_id   bigint NOT NULL,
    revoked  boolean NOT NULL,
    lapsed   boolean NOT NULL,
    PRIMARY KEY (slot, id)
);

-- One row: it changes with each tick after which other servers have to read again what their ticks remember.
CREATE TABLE memory (
    version  bigint PRIMARY KEY
);
INSERT INTO memory (version) VALUES (0);

-- Ticks of servers that share a database come one after the other. The lock is taken before the version is
-- read, in a statement of its own. If it is not the known one, the tick fails before it changes anything.
CREATE FUNCTION begin_tick(known bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(31345, 1001);
    SELECT version INTO found FROM memory;
    IF found <> known THEN
        RAISE EXCEPTION 'another server has changed what this one remembers' USING ERRCODE = '40001';
    END IF;
    RETURN found;
END $$;
