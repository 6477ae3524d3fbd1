-- The statements of budgets. None of them runs while there is no budget.

-- name: read_budgets
SELECT json_group_array(json_array(
    key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,
    pays_at, maker, unfinished, waiting, costliest, held_until))
FROM budgets

-- name: delete_budgets
DELETE FROM budgets WHERE key IN (SELECT value FROM json_each(:budgets))

-- name: due_budgets
SELECT json_group_array(key) FROM (
    SELECT key FROM budgets WHERE pays_at IS NOT NULL AND pays_at <= :now ORDER BY pays_at LIMIT :limit)

-- name: rebind
-- :draws lists [key, options as an object or null, checksum].
UPDATE jobs SET options = d.value ->> 1, checksum = d.value ->> 2
FROM json_each(:draws) AS d
WHERE jobs.id = d.value ->> 0 AND status IN ({scheduled}, {ready})

-- name: count_draws
-- Counts again what is kept of the jobs that draw, after unreadable rows were set aside.
SELECT json_group_array(json_array(key, unfinished, waiting, in_use)) FROM (
    SELECT d.value ->> 0 AS key, count(*) AS unfinished, sum(status = {ready}) AS waiting,
        sum(iif(status = {in_flight}, d.value ->> 1, 0)) AS in_use
    FROM jobs, json_each(options -> '$.budgets') AS d
    WHERE status <= {in_flight} GROUP BY 1)

-- name: note_lost_budgets
-- What remains is held: nobody knows what it allowed.
INSERT OR IGNORE INTO quarantine (source, key, at, reason, row)
SELECT DISTINCT 'budgets', d.value ->> 0, :now,
    'its row is lost: it is held until somebody has set it and ends the hold', x''
FROM jobs, json_each(options -> '$.budgets') AS d
WHERE status <= {in_flight} AND d.value ->> 0 NOT IN (SELECT key FROM budgets)

-- name: make_lost_budgets
-- The hold ends with the year 9999.
INSERT INTO budgets (key, allocation, created_at, updated_at, level, held_until)
SELECT d.value ->> 0, 1, :now, :now, 1, 253402300799000
FROM jobs, json_each(options -> '$.budgets') AS d
WHERE status <= {in_flight} AND d.value ->> 0 NOT IN (SELECT key FROM budgets) GROUP BY 1

-- name: return_draws
UPDATE budgets SET unfinished = drawn.n, waiting = drawn.waiting, in_use = drawn.in_use
FROM (
    SELECT d.value ->> 0 AS name, count(*) AS n, sum(status = {ready}) AS waiting,
        sum(iif(status = {in_flight}, d.value ->> 1, 0)) AS in_use
    FROM jobs, json_each(options -> '$.budgets') AS d
    WHERE status <= {in_flight} GROUP BY 1) AS drawn
WHERE key = drawn.name

-- name: count_costly
-- How many unfinished jobs draw more from a budget, up to :limit of them, the most that one of these
-- draws, and whether all lines and all jobs in flight were looked at: each up to :limit of them.
SELECT count(*), max(cost), (SELECT count(*) FROM (SELECT 1 FROM lines LIMIT :limit)) < :limit
    AND (SELECT count(*) FROM (
        SELECT 1 FROM jobs WHERE status = {in_flight} AND status <> {ready} LIMIT :limit)) < :limit
FROM (
    SELECT d.value ->> 1 AS cost
    FROM (SELECT id, draws FROM lines LIMIT :limit) AS l CROSS JOIN json_each(l.draws) AS d
    CROSS JOIN jobs ON jobs.line = l.id
    WHERE l.draws <> '' AND d.value ->> 0 = :key AND d.value ->> 1 > :most
    UNION ALL
    SELECT d.value ->> 1
    FROM (SELECT options FROM jobs WHERE status = {in_flight} AND status <> {ready} LIMIT :limit) AS j
    CROSS JOIN json_each(j.options -> '$.budgets') AS d
    WHERE d.value ->> 0 = :key AND d.value ->> 1 > :most
    LIMIT :limit)

-- name: forget_in_use
-- At a start: the next statement computes it again, and the first ticks find jobs that can be paid.
UPDATE budgets SET in_use = 0,
    pays_at = iif(EXISTS (SELECT 1 FROM lines WHERE shut_by = budgets.key), 0, NULL)

-- name: return_in_use
-- The rows of the jobs in flight say what they have drawn.
UPDATE budgets SET in_use = drawn.n
FROM (
    SELECT d.value ->> 0 AS name, sum(d.value ->> 1) AS n
    FROM jobs, json_each(options -> '$.budgets') AS d
    WHERE status = {in_flight} AND status <> {ready} GROUP BY 1) AS drawn
WHERE key = drawn.name

-- name: count_returned
UPDATE budgets SET waiting = waiting + d.n
FROM (
    SELECT d.value ->> 0 AS name, count(*) AS n
    FROM jobs, json_each(options -> '$.budgets') AS d
    WHERE jobs.id IN {keys} AND status = {ready} GROUP BY 1) AS d
WHERE key = d.name

-- name: count_templates
SELECT count(*) FROM cron_entries, json_each(job -> '$.options.budgets') AS d
WHERE d.value ->> 0 = :key
