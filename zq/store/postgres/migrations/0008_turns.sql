-- Ticks of servers that share a database run beside each other if they touch nothing that the ticks of others
-- may decide by. Each server counts in rows of its own, so that none waits for another's; a count is the sum
-- over all slots, and one row of it may be below zero.

ALTER TABLE queue_counts
    ADD COLUMN slot smallint NOT NULL DEFAULT 0,
    DROP CONSTRAINT queue_counts_n_check,
    DROP CONSTRAINT queue_counts_pkey,
    ADD PRIMARY KEY (queue, status, slot);
CREATE VIEW queue_totals AS
    SELECT queue, status, sum(n)::bigint AS n FROM queue_counts GROUP BY queue, status;

-- A tick takes its turn alone, or shares it with others. The lock is taken before the version is read, in a
-- statement of its own. If it is not the known one, the tick fails before it changes anything.
DROP FUNCTION begin_tick(bigint);
CREATE FUNCTION begin_tick(known bigint, beside boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    IF beside THEN
        PERFORM pg_advisory_xact_lock_shared(31345, 1001);
    ELSE
        PERFORM pg_advisory_xact_lock(31345, 1001);
    END IF;
    SELECT version INTO found FROM memory;
    IF found <> known THEN
        RAISE EXCEPTION 'another server has changed what this one remembers' USING ERRCODE = '40001';
    END IF;
    RETURN found;
END $$;
