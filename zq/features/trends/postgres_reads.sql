-- Trends as readers see them.

-- name: trends
SELECT at, json_build_array(enqueued, delivered, completed, failed, died, expired, wait, run)
FROM trends WHERE length = :length AND (queue, at) >= (:queue, :since) AND queue <= :queue
ORDER BY queue, at

-- name: type_trends
-- Added up by steps of so many milliseconds since then. :queue and :type of NULL mean all.
WITH chosen AS MATERIALIZED (
    SELECT queue, type, (at - :since::bigint) / :step::bigint AS step, done, failed, run
    FROM type_trends
    WHERE length = :length AND at >= :since::bigint
        AND (:queue::text IS NULL OR queue = :queue::text)
        AND (:type::text IS NULL OR type = :type::text)),
parts AS (
    SELECT queue, type, step, json_object_agg(part, n) AS run FROM (
        SELECT queue, type, step, key AS part, sum(value::bigint)::bigint AS n
        FROM chosen CROSS JOIN LATERAL json_each_text(run) GROUP BY 1, 2, 3, 4) AS summed
    GROUP BY 1, 2, 3)
SELECT t.queue, t.type, t.step, json_build_array(t.done, t.failed, coalesce(parts.run, '{{}}'))
FROM (SELECT queue, type, step, sum(done)::bigint AS done, sum(failed)::bigint AS failed
    FROM chosen GROUP BY 1, 2, 3) AS t
LEFT JOIN parts ON parts.queue = t.queue AND parts.type = t.type AND parts.step = t.step
