-- The statements of users.

-- name: other_admin
SELECT EXISTS (SELECT 1 FROM users WHERE is_admin AND id <> :id)

-- name: create_user
INSERT OR IGNORE INTO users (id, name, hash, is_admin, created_at, updated_at)
VALUES (:id, :user, :hash, :is_admin, :created, :created)

-- name: change_user
UPDATE OR IGNORE users
SET name = ifnull(:user, name), hash = ifnull(:hash, hash), is_admin = ifnull(:is_admin, is_admin),
    updated_at = :changed
WHERE id = :id

-- name: delete_grants
DELETE FROM user_grants WHERE user = :id

-- name: add_grant
INSERT OR IGNORE INTO user_grants (id, user, action, pattern, group_id, created_at)
VALUES (:id, :user, :action, :pattern, :group, :created)

-- name: delete_grant
DELETE FROM user_grants WHERE id = :id AND user = :user
