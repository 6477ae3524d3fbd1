-- Statements that read alike in both stores.

-- name: schemas
SELECT queue, body, version, updated_at FROM schemas ORDER BY queue
