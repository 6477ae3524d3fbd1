-- Groups of failures as readers see them.

-- name: failures_since
-- Each group that has come since then, with its counts by bars of so many milliseconds.
SELECT json_group_array(json_array(
    signature, queue, error_type, message, n, first_seen, last_seen, sample, json(types), json(bars)))
FROM (
    SELECT s, q, json_group_array(json_array(bar, failed)) AS bars FROM (
        SELECT signature AS s, queue AS q, (at - :since) / :bar AS bar, sum(n) AS failed
        FROM failure_counts WHERE length = :length AND at >= :since GROUP BY s, q, bar)
    GROUP BY s, q)
CROSS JOIN error_groups ON signature = s AND queue = q

-- name: dead_of_cause
-- How many jobs are dead of a cause, and how many of its failures were looked at: the latest :most.
-- :queues of NULL means all.
SELECT count(id), count(*)
FROM (SELECT job_id, attempt FROM errors WHERE signature = :signature ORDER BY job_id DESC LIMIT :most)
LEFT JOIN jobs ON id = job_id AND attempts = attempt AND status = {dead}
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
