-- Statements that read alike in both stores.

-- name: drop_schema
DELETE FROM schemas WHERE queue = :queue

-- name: clear_schemas
DELETE FROM schemas
