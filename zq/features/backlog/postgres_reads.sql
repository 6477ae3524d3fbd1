-- What could run of a queue: each by a few steps, or up to :most.

-- name: counts
SELECT coalesce(sum(n) FILTER (WHERE status = {ready}), 0)::bigint,
    coalesce(sum(n) FILTER (WHERE status = {in_flight}), 0)::bigint
FROM queue_totals WHERE queue = :queue

-- name: kinds
-- True if any unfinished job has a group, and true if any waits in a line.
SELECT EXISTS (
        SELECT 1 FROM jobs WHERE queue = :queue AND group_id IS NOT NULL AND status <= {in_flight}),
    EXISTS (SELECT 1 FROM lines WHERE queue = :queue)

-- name: lines
-- The first lines of a queue, in the order of claims, with what their fair keys have in flight and may have.
SELECT lines.id, draws, lines.fair_key, coalesce(s.in_flight, 0), s.paid_until, l.max_in_flight, l.rate
FROM (SELECT * FROM lines WHERE queue = :queue LIMIT :most) AS lines
LEFT JOIN shares AS s ON s.queue = ANY (ARRAY[lines.queue]) AND s.fair_key = substr(lines.fair_key, 2)
LEFT JOIN fair_limits AS l ON l.queue = ANY (ARRAY[lines.queue]) AND l.fair_key = substr(lines.fair_key, 2)
ORDER BY priority, head NULLS FIRST

-- name: budgets
SELECT key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,
    pays_at, maker, unfinished, waiting, costliest, held_until
FROM budgets WHERE key = ANY (:keys::text[])
