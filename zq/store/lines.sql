-- Statements that read alike in both stores.

-- name: clear_lines
DELETE FROM lines
