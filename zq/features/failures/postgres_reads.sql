-- Groups of failures as readers see them.

-- name: failures_since
-- Each group that has come since then, with its counts by bars of so many milliseconds.
SELECT signature, g.queue, error_type, message, n, first_seen, last_seen, sample, types, bars
FROM (
    SELECT s, q, json_agg(json_build_array(bar, failed)) AS bars FROM (
        SELECT signature AS s, queue AS q, (at - :since::bigint) / :bar::bigint AS bar,
            sum(n)::bigint AS failed
        FROM failure_counts WHERE length = :length AND at >= :since::bigint
        GROUP BY 1, 2, 3) AS counted
    GROUP BY s, q) AS counts
JOIN error_groups AS g ON signature = ANY (ARRAY[s]) AND g.queue = q

-- name: dead_of_cause
-- How many jobs are dead of a cause, and how many of its failures were looked at: the latest :most.
-- :queues of NULL means all.
SELECT count(id), count(*)
FROM (SELECT job_id, attempt FROM errors WHERE signature = ANY (ARRAY[:signature])
    ORDER BY signature DESC, +job_id DESC LIMIT :most) AS e
LEFT JOIN jobs ON id = ANY (ARRAY[job_id]) AND attempts = attempt AND +status = {dead}
    AND (:queues::json IS NULL
        OR queue IN (SELECT json_array_elements_text(:queues::json)))
