-- Statements that read alike in both stores.

-- name: clear_batches
DELETE FROM open_batches
