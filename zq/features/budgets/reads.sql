-- Statements that read alike in both stores.

-- name: budgets
SELECT key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,
    pays_at, maker, unfinished, waiting, costliest, held_until
FROM budgets WHERE :key::text IS NULL OR key = :key::text ORDER BY key
