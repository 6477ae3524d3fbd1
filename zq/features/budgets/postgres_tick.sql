-- The statements of budgets. None of them runs while there is no budget.

-- name: read_budgets
SELECT key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,
    pays_at, maker, unfinished, waiting, costliest, held_until
FROM budgets

-- name: delete_budgets
DELETE FROM budgets WHERE key = ANY (:budgets::text[])

-- name: due_budgets
SELECT key FROM budgets WHERE pays_at IS NOT NULL AND pays_at <= :now ORDER BY pays_at LIMIT :limit

-- name: rebind
-- :draws lists [key, options as an object or null, checksum].
UPDATE jobs SET options = d.opts, checksum = d.sum
FROM unnest(:draws.0::bigint[], :draws.1::json[], :draws.2::bigint[]) AS d (key, opts, sum)
WHERE jobs.id = ANY (ARRAY[d.key]) AND +status IN ({scheduled}, {ready})

-- name: count_draws
-- Counts again what is kept of the jobs that draw, after unreadable rows were set aside.
SELECT d ->> 0 AS key, count(*), count(*) FILTER (WHERE status = {ready}),
    coalesce(sum((d ->> 1)::bigint) FILTER (WHERE status = {in_flight}), 0)::bigint
FROM jobs CROSS JOIN LATERAL json_array_elements(options -> 'budgets') AS d
WHERE status <= {in_flight} GROUP BY 1

-- name: return_draws
UPDATE budgets SET unfinished = drawn.n, waiting = drawn.ready, in_use = drawn.used
FROM (
    SELECT d ->> 0 AS name, count(*) AS n, count(*) FILTER (WHERE status = {ready}) AS ready,
        coalesce(sum((d ->> 1)::bigint) FILTER (WHERE status = {in_flight}), 0) AS used
    FROM jobs CROSS JOIN LATERAL json_array_elements(options -> 'budgets') AS d
    WHERE status <= {in_flight} GROUP BY 1) AS drawn
WHERE key = ANY (ARRAY[drawn.name])

-- name: count_costly
-- How many unfinished jobs draw more from a budget, up to :limit of them, the most that one of these
-- draws, and whether all lines and all jobs in flight were looked at: each up to :limit of them.
SELECT count(*), max(cost),
    (SELECT count(*) FROM (SELECT 1 FROM lines ORDER BY id LIMIT :limit) AS few) < :limit
    AND (SELECT count(*) FROM (
        SELECT 1 FROM jobs WHERE status = {in_flight} AND status <> {ready} LIMIT :limit) AS few) < :limit
FROM (
    SELECT (d ->> 1)::bigint AS cost
    FROM (SELECT id, draws FROM lines WHERE draws <> '' ORDER BY id LIMIT :limit) AS l
    CROSS JOIN LATERAL json_array_elements(l.draws::json) AS d
    CROSS JOIN LATERAL (SELECT 1 FROM jobs WHERE line = l.id OFFSET 0) AS jobs
    WHERE d ->> 0 = :key AND (d ->> 1)::bigint > :most
    UNION ALL
    SELECT (d ->> 1)::bigint
    FROM (
        SELECT options FROM jobs WHERE status = {in_flight} AND status <> {ready} LIMIT :limit) AS j
    CROSS JOIN LATERAL json_array_elements(j.options -> 'budgets') AS d
    WHERE d ->> 0 = :key AND (d ->> 1)::bigint > :most
    LIMIT :limit) AS costs

-- name: forget_in_use
-- At a start: the next statement computes it again, and the first ticks find jobs that can be paid.
UPDATE budgets SET in_use = 0,
    pays_at = CASE WHEN EXISTS (SELECT 1 FROM lines WHERE shut_by = budgets.key OFFSET 0)
    THEN 0 END

-- name: return_in_use
-- The rows of the jobs in flight say what they have drawn.
UPDATE budgets SET in_use = drawn.n
FROM (
    SELECT d ->> 0 AS name, sum((d ->> 1)::bigint) AS n
    FROM jobs CROSS JOIN LATERAL json_array_elements(options -> 'budgets') AS d
    WHERE status = {in_flight} AND status <> {ready} GROUP BY 1) AS drawn
WHERE key = ANY (ARRAY[drawn.name])

-- name: count_returned
UPDATE budgets SET waiting = waiting + drawn.n
FROM (
    SELECT d ->> 0 AS name, count(*) AS n
    FROM jobs CROSS JOIN LATERAL json_array_elements(options -> 'budgets') AS d
    WHERE jobs.id = {keys} AND +status = {ready} GROUP BY 1) AS drawn
WHERE key = ANY (ARRAY[drawn.name])

-- name: count_templates
SELECT count(*) FROM cron_entries
CROSS JOIN LATERAL json_array_elements(job -> 'options' -> 'budgets') AS d
WHERE d ->> 0 = :key
