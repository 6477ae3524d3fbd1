-- Statements that read alike in both stores.

-- name: read_meta
SELECT name, value FROM meta
