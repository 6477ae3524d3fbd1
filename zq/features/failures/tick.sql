-- Statements that read alike in both stores.

-- name: count_error_groups
SELECT count(*) FROM error_groups

-- name: forget_error_groups
DELETE FROM error_groups WHERE last_seen < :before

-- name: forget_failure_counts
-- Those of the oldest time before :before.
DELETE FROM failure_counts WHERE length = :length AND at = (
    SELECT min(at) FROM failure_counts WHERE length = :length AND at < :before)

-- name: clear_error_groups
DELETE FROM error_groups

-- name: clear_failure_counts
DELETE FROM failure_counts
