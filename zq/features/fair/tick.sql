-- Statements that read alike in both stores.

-- name: has_shares
SELECT EXISTS (SELECT 1 FROM shares)

-- name: has_shut_keys
-- The names of keys are lists, in JSON.
SELECT EXISTS (SELECT 1 FROM lines WHERE shut_by >= '[' AND shut_by < '\')

-- name: open_every_key
-- At a start: jobs in flight were given back. The names of keys are lists, in JSON.
UPDATE lines SET shut_by = NULL, shut_cost = NULL WHERE shut_by >= '[' AND shut_by < '\'

-- name: last_finish
-- The last tag of the keys without jobs.
SELECT finish FROM shares WHERE queue = :queue AND unfinished = 0 ORDER BY finish DESC LIMIT 1

-- name: drop_fair_limit
DELETE FROM fair_limits WHERE queue = :queue AND fair_key = :key

-- name: clear_shares
DELETE FROM shares

-- name: clear_shared_queues
DELETE FROM shared_queues

-- name: clear_fair_limits
DELETE FROM fair_limits
