-- Statements that read alike in both stores.

-- name: user
SELECT {user_row} FROM users WHERE id = :id

-- name: any_user
SELECT EXISTS (SELECT 1 FROM users)

-- name: delete_user
DELETE FROM users WHERE id = :id
