-- Trends as readers see them.

-- name: trends
SELECT json_group_array(json_array(at, json_array(
    enqueued, delivered, completed, failed, died, expired, json(wait), json(run))))
FROM (SELECT * FROM trends WHERE length = :length AND queue = :queue AND at >= :since ORDER BY at)

-- name: type_trends
-- Added up by steps of so many milliseconds since then. :queue and :type of NULL mean all.
WITH chosen AS MATERIALIZED (
    SELECT queue, type, (at - :since) / :step AS step, done, failed, run FROM type_trends
    WHERE length = :length AND at >= :since
        AND (:queue IS NULL OR queue = :queue) AND (:type IS NULL OR type = :type)),
parts AS MATERIALIZED (
    SELECT queue, type, step, json_group_object(part, n) AS run FROM (
        SELECT queue, c.type, step, key AS part, sum(value) AS n
        FROM chosen AS c CROSS JOIN json_each(c.run) GROUP BY queue, c.type, step, part)
    GROUP BY queue, type, step)
SELECT json_group_array(json_array(t.queue, t.type, t.step,
    json_array(t.done, t.failed, json(coalesce(parts.run, json_object())))))
FROM (SELECT queue, type, step, sum(done) AS done, sum(failed) AS failed
    FROM chosen GROUP BY queue, type, step) AS t
LEFT JOIN parts ON parts.queue = t.queue AND parts.type = t.type AND parts.step = t.step
