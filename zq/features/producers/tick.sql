-- Statements that read alike in both stores.

-- name: count_producers
SELECT count(*) FROM producers

-- name: delete_producer
DELETE FROM producers WHERE name = :producer
