-- Statements that read alike in both stores.

-- name: get_revision
SELECT revision FROM open_batches WHERE key = :key
