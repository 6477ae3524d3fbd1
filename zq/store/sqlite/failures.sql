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
INSERT INTO error_groups (
    signature, queue, error_type, message, n, sample, first_seen, last_seen, hour, in_hour)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, :now, :now,
    :now / 3600000, value ->> 4
FROM json_each(:groups) WHERE true
ON CONFLICT (signature, queue) DO UPDATE
SET n = n + excluded.n, sample = excluded.sample, last_seen = max(last_seen, excluded.last_seen),
    in_hour_before = CASE excluded.hour - hour WHEN 0 THEN in_hour_before WHEN 1 THEN in_hour ELSE 0 END,
    in_hour = CASE excluded.hour - hour WHEN 0 THEN in_hour + excluded.n ELSE excluded.n END,
    hour = excluded.hour

-- name: clear_error_groups
DELETE FROM error_groups

-- name: error_groups
SELECT json_group_array(json_array(
    signature, queue, error_type, message, n, first_seen, last_seen, sample, hour, in_hour, in_hour_before))
FROM error_groups
