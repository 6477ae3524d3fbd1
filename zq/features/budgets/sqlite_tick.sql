-- The statements of budgets. None of them runs while there is no budget.

-- name: read_budgets
SELECT json_group_array(json_array(
    key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,
    pays_at, maker))
FROM budgets

-- name: read_lines
SELECT json_group_array(json_array(id, queue, draws, unfinished, waiting)) FROM lines

-- name: write_budgets
-- :budgets lists the columns of each in the order of the table.
INSERT OR REPLACE INTO budgets
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11
FROM json_each(:budgets)

-- name: delete_budgets
DELETE FROM budgets WHERE key IN (SELECT value FROM json_each(:budgets))

-- name: write_lines
-- :lines lists [id, queue, draws, unfinished, waiting].
INSERT OR REPLACE INTO lines
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(:lines)

-- name: delete_lines
DELETE FROM lines WHERE id IN (SELECT value FROM json_each(:lines))

-- name: hold_for_budgets
-- Jobs that wait, or wait again, and draw from budgets.
UPDATE jobs SET held = held | 2 WHERE id IN {keys} AND status IN ({scheduled}, {ready})

-- name: free_of_budgets
-- Jobs that are about to be taken, or draw from no budget any more.
UPDATE jobs SET held = held & ~2 WHERE id IN {keys} AND held & 2 = 2

-- name: line_up
-- :places lists [key, line]. Adds those of the jobs that only budgets hold.
INSERT OR REPLACE INTO parked (job_id, line, priority)
SELECT jobs.id, p.value ->> 1, priority FROM json_each(:places) AS p
CROSS JOIN jobs ON jobs.id = p.value ->> 0
WHERE status = {ready} AND held = 2

-- name: step_out
DELETE FROM parked WHERE job_id IN {keys}

-- name: line_arm
-- One line's part of a claim, of which only :most jobs may be claimed.
SELECT key, urgency FROM (
    SELECT job_id AS key, priority AS urgency FROM parked
    WHERE line = :line ORDER BY priority, job_id LIMIT :most)

-- name: rebind
-- :draws lists [key, options as an object or null, checksum].
UPDATE jobs SET options = d.value ->> 1, checksum = d.value ->> 2
FROM json_each(:draws) AS d
WHERE jobs.id = d.value ->> 0 AND status IN ({scheduled}, {ready})

-- name: count_lines
-- Counts the lines again from the rows, after unreadable rows were set aside.
SELECT json_group_array(json_array(queue, draws, unfinished, waiting)) FROM (
    SELECT queue, options -> '$.budgets' AS draws, count(*) AS unfinished,
        sum(status = {ready}) AS waiting
    FROM jobs WHERE status <= {in_flight} AND options -> '$.budgets' IS NOT NULL
    GROUP BY queue, draws)

-- name: read_in_use
SELECT json_group_array(json_array(key, n)) FROM (
    SELECT d.value ->> 0 AS key, sum(d.value ->> 1) AS n
    FROM jobs, json_each(options -> '$.budgets') AS d
    WHERE status = {in_flight} AND status <> {ready} GROUP BY 1)

-- name: forget_lost
-- Places of jobs that no longer exist.
DELETE FROM parked WHERE job_id NOT IN (SELECT id FROM jobs)

-- name: clear_lines
DELETE FROM lines

-- name: clear_parked
DELETE FROM parked

-- name: clear_budgets
DELETE FROM budgets

-- name: forget_in_use
-- At a start: the next statement computes it again, and the first tick finds jobs that can be paid.
UPDATE budgets SET in_use = 0, pays_at = 0

-- name: return_in_use
-- The rows of the jobs in flight say what they have drawn.
UPDATE budgets SET in_use = drawn.n
FROM (
    SELECT d.value ->> 0 AS name, sum(d.value ->> 1) AS n
    FROM jobs, json_each(options -> '$.budgets') AS d
    WHERE status = {in_flight} AND status <> {ready} GROUP BY 1) AS drawn
WHERE key = drawn.name

-- name: hold_returned
UPDATE jobs SET held = held | 2
WHERE id IN {keys} AND status = {ready} AND options -> '$.budgets' IS NOT NULL

-- name: count_returned
UPDATE lines SET waiting = waiting + d.n
FROM (
    SELECT queue AS name, options -> '$.budgets' AS drawn, count(*) AS n
    FROM jobs WHERE id IN {keys} AND status = {ready} AND held & 2 = 2 GROUP BY 1, 2) AS d
WHERE queue = d.name AND draws = d.drawn

-- name: line_up_returned
INSERT OR REPLACE INTO parked (job_id, line, priority)
SELECT jobs.id, lines.id, priority FROM jobs
CROSS JOIN lines ON lines.queue = jobs.queue AND draws = options -> '$.budgets'
WHERE jobs.id IN {keys} AND status = {ready} AND held = 2

-- name: count_templates
SELECT count(*) FROM cron_entries, json_each(job -> '$.options.budgets') AS d
WHERE d.value ->> 0 = :key
