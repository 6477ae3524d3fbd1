-- Statements that read alike in both stores.

-- name: next_pay
SELECT pays_at FROM budgets WHERE pays_at IS NOT NULL ORDER BY pays_at LIMIT 1

-- name: forget_draws
-- After a salvage that has left jobs out: `return_draws` then writes what the rows of jobs say.
UPDATE budgets SET unfinished = 0, waiting = 0, in_use = 0

-- name: clear_budgets
DELETE FROM budgets
