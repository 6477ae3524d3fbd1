-- Statements that read alike in both stores.

-- name: one
SELECT :key::text

-- name: tally
SELECT queue, count(*) FROM fair_limits GROUP BY queue
