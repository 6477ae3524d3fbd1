-- The row of a tick, which is there if its transaction was committed, and the locks of a server.

-- name: note
INSERT INTO ticks (start, no) VALUES (:start, :no)

-- name: forget
DELETE FROM ticks WHERE start = :start AND no < :no

-- name: find
SELECT no FROM ticks WHERE start = :start AND no = :no

-- name: leave
-- Nobody is to wait for this server after an outage.
UPDATE servers SET postmaster = NULL WHERE slot = :slot

-- name: release
SELECT pg_advisory_unlock_all()
