-- The row of a tick, which is there if its transaction was committed.

-- name: note
INSERT INTO ticks (start, no) VALUES (:start, :no)

-- name: forget
DELETE FROM ticks WHERE start = :start AND no < :no

-- name: find
SELECT no FROM ticks WHERE start = :start AND no = :no
