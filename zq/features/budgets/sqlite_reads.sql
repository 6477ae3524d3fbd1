-- Budgets as readers see them.

-- name: budgets
SELECT key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at
FROM budgets WHERE :key IS NULL OR key = :key ORDER BY key

-- name: demand
-- How many jobs wait for each budget, and how many draw from it in all. It takes a step for each line,
-- and lines are few.
SELECT d.value ->> 0, sum(waiting), sum(unfinished)
FROM lines, json_each(draws) AS d GROUP BY 1
