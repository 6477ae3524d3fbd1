-- Statements that read alike in both stores.

-- name: clear_trends
DELETE FROM trends

-- name: count_type_trends
-- Of types that have a name.
SELECT count(*) FROM type_trends WHERE length = :length AND at = :at AND queue <> '*'

-- name: forget_type_trends
-- Those of the oldest time before :before.
DELETE FROM type_trends WHERE length = :length AND at = (
    SELECT min(at) FROM type_trends WHERE length = :length AND at < :before)

-- name: clear_type_trends
DELETE FROM type_trends
