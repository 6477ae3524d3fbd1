-- Statements that read alike in both stores.

-- name: count
SELECT count(*) FROM jobs WHERE CONDITIONS

-- name: note
SELECT value FROM meta WHERE name = 'note:' || :name
