-- Fair keys as readers see them.

-- name: first_by_turn
-- The keys of the lines whose turns come first, by an index, and up to as many others.
SELECT substr(fair_key, 2) FROM (
    SELECT fair_key FROM lines
    WHERE head IS NOT NULL AND shut_by IS NULL AND fair_key <> '' AND queue = :queue
    ORDER BY priority, place, head LIMIT :most)
UNION ALL SELECT fair_key FROM (SELECT fair_key FROM shares WHERE queue = :queue LIMIT :most)

-- name: first_by_age
-- The keys of the lines whose heads are the oldest, by an index, and up to as many others.
SELECT substr(fair_key, 2) FROM (
    SELECT fair_key FROM lines WHERE queue = :queue AND head > 0 ORDER BY head LIMIT :most)
UNION ALL SELECT fair_key FROM (SELECT fair_key FROM shares WHERE queue = :queue LIMIT :most)

-- name: keys
-- SOME stands for one of these three, ORDERED for an order.
SELECT fair_key, max(finish - virtual, 0.0), weight, mean, waiting, in_flight, oldest
FROM (
    SELECT s.fair_key, finish, virtual, ifnull(l.weight, s.weight) AS weight,
        ifnull(s.mean, q.mean) AS mean, waiting, in_flight, (
            SELECT min(jobs.ready_at) FROM lines CROSS JOIN jobs ON jobs.id = lines.head
            WHERE lines.queue = s.queue AND lines.fair_key = '=' || s.fair_key) AS oldest
    FROM shares AS s CROSS JOIN shared_queues AS q ON q.queue = s.queue
    LEFT JOIN fair_limits AS l ON l.queue = s.queue AND l.fair_key = s.fair_key
    WHERE s.queue = :queue AND s.unfinished > 0 AND s.fair_key IN (SOME)
    ORDER BY ORDERED LIMIT :limit OFFSET :skip)

-- name: limits
SELECT fair_key, weight, max_in_flight, rate FROM fair_limits
WHERE queue = :queue AND fair_key IN (SELECT value FROM json_each(:keys))

-- name: sums
-- Of up to :most keys.
SELECT count(*), ifnull(sum(waiting), 0), ifnull(sum(in_flight), 0),
    total(iif(waiting > 0, ifnull(l.weight, s.weight), 0))
FROM (SELECT * FROM shares WHERE queue = :queue LIMIT :most) AS s
LEFT JOIN fair_limits AS l ON l.queue = s.queue AND l.fair_key = s.fair_key
WHERE unfinished > 0

-- name: longest_waiting
-- Keys by the ages of their first lines' heads, among up to :most open lines and as many that are shut.
SELECT s.queue, s.fair_key, waiting, jobs.ready_at
FROM (
    SELECT * FROM (
        SELECT * FROM lines WHERE head IS NOT NULL AND shut_by IS NULL
        ORDER BY aging_ms, priority, head LIMIT :most)
    UNION ALL
    SELECT * FROM (SELECT * FROM lines WHERE shut_by >= '[' AND shut_by < '\' LIMIT :most)) AS lines
CROSS JOIN jobs ON jobs.id = lines.head
CROSS JOIN shares AS s ON s.queue = lines.queue AND s.fair_key = substr(lines.fair_key, 2)
WHERE lines.fair_key <> ''
ORDER BY jobs.ready_at LIMIT :limit
