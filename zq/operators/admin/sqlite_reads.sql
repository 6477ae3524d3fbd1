-- Windows on lists of unfinished jobs. LIST stands for the condition of a list's jobs, PLACE for the
-- first column of its order.

-- name: jobs
SELECT json_group_array({job_row}) FROM jobs WHERE id IN {keys} AND LIST

-- name: place_of
SELECT PLACE FROM jobs WHERE id = :key AND LIST

-- name: count_before
-- In two parts, as are the searches: a comparison of pairs would begin at the first of them.
SELECT (SELECT count(*) FROM jobs WHERE LIST AND PLACE < :place)
    + (SELECT count(*) FROM jobs WHERE LIST AND PLACE = :place AND id < :key)

-- name: next_beside
SELECT id FROM jobs WHERE LIST AND PLACE = :place AND id > :key AND MATCHES ORDER BY id LIMIT 1

-- name: previous_beside
SELECT id FROM jobs WHERE LIST AND PLACE = :place AND id < :key AND MATCHES
ORDER BY id DESC LIMIT 1

-- name: contains
instr(COLUMN, WORD) > 0

-- name: totals
SELECT status, sum(n) FROM queue_counts WHERE status <= {in_flight} GROUP BY status
