-- Statements that read alike in both stores.

-- name: user
SELECT {user_row} FROM users WHERE id = :id

-- name: user_named
SELECT {user_row} FROM users WHERE name = :name

-- name: users
SELECT {user_row} FROM users ORDER BY name
