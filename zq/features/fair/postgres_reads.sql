-- Fair keys as readers see them.

-- name: first_by_turn
-- The keys of the lines whose turns come first, by an index, and up to as many others.
(SELECT substr(fair_key, 2) FROM lines
    WHERE head IS NOT NULL AND shut_by IS NULL AND fair_key <> '' AND queue = :queue
    ORDER BY queue, priority, place, head LIMIT :most)
UNION ALL (SELECT fair_key FROM shares WHERE queue = :queue ORDER BY queue, fair_key LIMIT :most)

-- name: first_by_age
-- The keys of the lines whose heads are the oldest, by an index, and up to as many others.
(SELECT substr(fair_key, 2) FROM lines
    WHERE queue = :queue AND head > 0 ORDER BY queue, head LIMIT :most)
UNION ALL (SELECT fair_key FROM shares WHERE queue = :queue ORDER BY queue, fair_key LIMIT :most)

-- name: keys
-- SOME stands for one of these three, ORDERED for an order.
SELECT fair_key, greatest(finish - virtual, 0.0), weight, mean, waiting, in_flight, oldest
FROM (
    SELECT s.fair_key, finish, virtual, coalesce(l.weight, s.weight) AS weight,
        coalesce(s.mean, q.mean) AS mean, waiting, in_flight, (
            SELECT min(jobs.ready_at) FROM lines JOIN jobs ON jobs.id = ANY (ARRAY[lines.head])
            WHERE lines.queue = s.queue AND lines.fair_key = '=' || s.fair_key) AS oldest
    FROM (SELECT DISTINCT k.fair_key FROM unnest(ARRAY(SOME)) AS k (fair_key)) AS k
    CROSS JOIN LATERAL (
        SELECT * FROM shares WHERE queue = :queue AND shares.fair_key = k.fair_key OFFSET 0) AS s
    JOIN shared_queues AS q ON q.queue = ANY (ARRAY[s.queue])
    LEFT JOIN fair_limits AS l ON l.queue = ANY (ARRAY[s.queue]) AND l.fair_key = s.fair_key
    WHERE s.unfinished > 0) AS s
ORDER BY ORDERED LIMIT :limit OFFSET :skip

-- name: limits
SELECT l.fair_key, weight, max_in_flight, rate FROM unnest(:keys::text[]) AS k (fair_key)
CROSS JOIN LATERAL (
    SELECT * FROM fair_limits WHERE queue = :queue AND fair_limits.fair_key = k.fair_key OFFSET 0) AS l

-- name: sums
-- Of up to :most keys.
SELECT count(*), coalesce(sum(waiting), 0)::bigint, coalesce(sum(in_flight), 0)::bigint,
    coalesce(sum(coalesce(l.weight, s.weight)) FILTER (WHERE waiting > 0), 0)
FROM (SELECT * FROM shares WHERE queue = :queue LIMIT :most) AS s
LEFT JOIN fair_limits AS l ON l.queue = ANY (ARRAY[s.queue]) AND l.fair_key = s.fair_key
WHERE unfinished > 0

-- name: longest_waiting
-- Keys by the ages of their first lines' heads, among up to :most open lines and as many that are shut.
SELECT s.queue, s.fair_key, waiting, jobs.ready_at
FROM (
    (SELECT * FROM lines WHERE +head IS NOT NULL AND shut_by IS NULL
        ORDER BY aging_ms, priority, head LIMIT :most)
    UNION ALL
    (SELECT * FROM lines WHERE shut_by >= '[' AND shut_by < '\' LIMIT :most)) AS lines
JOIN jobs ON jobs.id = ANY (ARRAY[lines.head])
JOIN shares AS s ON s.queue = ANY (ARRAY[lines.queue]) AND s.fair_key = substr(lines.fair_key, 2)
WHERE lines.fair_key <> ''
ORDER BY jobs.ready_at LIMIT :limit
