-- The readers' query about schemas.

-- name: schemas
SELECT queue, body, version, updated_at FROM schemas ORDER BY queue
