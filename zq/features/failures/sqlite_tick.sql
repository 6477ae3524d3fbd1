-- Groups of failures by their causes.

-- name: known_error_groups
-- :names lists [signature, queue]. Those of them that are counted already.
SELECT json_group_array(json_array(signature, queue))
FROM (SELECT value ->> 0 AS s, value ->> 1 AS q FROM json_each(:names))
CROSS JOIN error_groups ON signature = s AND queue = q

-- name: write_error_groups
-- :groups lists [signature, queue, error type, message, n, sample, types].
INSERT INTO error_groups (
    signature, queue, error_type, message, n, sample, first_seen, last_seen, types)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now, :now,
    value -> 6
FROM json_each(:groups) WHERE true
ON CONFLICT (signature, queue) DO UPDATE
SET n = n + excluded.n, sample = excluded.sample, last_seen = max(last_seen, excluded.last_seen),
    types = (SELECT json_group_array(value) FROM (
        SELECT value FROM json_each(error_groups.types)
        UNION SELECT value FROM json_each(excluded.types) LIMIT :most_types))

-- name: write_failure_counts
-- :groups lists [signature, queue, _, _, n]. :lengths are in milliseconds.
INSERT INTO failure_counts (length, at, signature, queue, n)
SELECT l.value, :now - :now % l.value, g.value ->> 0, g.value ->> 1, g.value ->> 4
FROM json_each(:lengths) AS l CROSS JOIN json_each(:groups) AS g WHERE true
ON CONFLICT (length, at, signature, queue) DO UPDATE SET n = n + excluded.n
