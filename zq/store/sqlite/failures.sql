-- Groups of failures by their causes.

-- name: known_error_groups
-- :names lists [signature, queue]. Those of them that are counted already.
SELECT json_group_array(json_array(signature, queue))
FROM (SELECT value ->> 0 AS s, value ->> 1 AS q FROM json_each(:names))
CROSS JOIN error_groups ON signature = s AND queue = q

-- name: count_error_groups
SELECT count(*) FROM error_groups

-- name: forget_error_groups
DELETE FROM error_groups WHERE last_seen < :before

-- name: write_error_groups
-- :groups lists [signature, queue, error type, message, n, sample].
INSERT INTO error_groups (signature, queue, error_type, message, n, sample, first_seen, last_seen)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now, :now
FROM json_each(:groups) WHERE true
ON CONFLICT (signature, queue) DO UPDATE
SET n = n + excluded.n, sample = excluded.sample, last_seen = max(last_seen, excluded.last_seen)

-- name: clear_error_groups
DELETE FROM error_groups

-- name: error_groups
SELECT json_group_array(json_array(
    signature, queue, error_type, message, n, first_seen, last_seen, sample))
FROM error_groups
