-- Windows on lists of unfinished jobs. LIST stands for the condition of a list's jobs, PLACE for the
-- first column of its order.

-- name: jobs
SELECT {job_row} FROM (SELECT * FROM jobs WHERE id = {keys} OFFSET 0) AS jobs WHERE LIST

-- name: place_of
SELECT PLACE FROM (SELECT * FROM jobs WHERE id = :key OFFSET 0) AS jobs WHERE LIST

-- name: count_before
-- In two parts, as are the searches: a comparison of pairs would begin at the first of them.
SELECT (SELECT count(*) FROM (
        SELECT 1 FROM jobs WHERE LIST AND PLACE < :place ORDER BY PLACE, id) AS before)
    + (SELECT count(*) FROM (
        SELECT 1 FROM jobs WHERE LIST AND (PLACE, id) < (:place, :key) AND PLACE >= :place
        ORDER BY PLACE, id) AS beside)

-- name: next_beside
SELECT id FROM jobs WHERE LIST AND (PLACE, id) > (:place, :key) AND PLACE <= :place AND MATCHES
ORDER BY PLACE, id LIMIT 1

-- name: previous_beside
SELECT id FROM jobs WHERE LIST AND (PLACE, id) < (:place, :key) AND PLACE >= :place AND MATCHES
ORDER BY PLACE DESC, id DESC LIMIT 1

-- name: contains
strpos(COLUMN, WORD) > 0

-- name: totals
SELECT status, sum(n)::bigint FROM queue_totals WHERE status <= {in_flight} GROUP BY status
