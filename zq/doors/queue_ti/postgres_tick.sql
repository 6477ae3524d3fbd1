-- The statements of users.

-- name: other_admin
SELECT EXISTS (SELECT 1 FROM users WHERE is_admin = 1 AND id <> :id)

-- name: create_user
INSERT INTO users (id, name, hash, is_admin, created_at, updated_at)
VALUES (:id, :user, :hash, :is_admin, :created, :created)
ON CONFLICT DO NOTHING

-- name: change_user
-- Nothing, if another user has the name.
UPDATE users
SET name = coalesce(:user::text, name), hash = coalesce(:hash::text, hash),
    is_admin = coalesce(:is_admin::integer, is_admin), updated_at = :changed
WHERE id = :id AND NOT EXISTS (SELECT 1 FROM users AS u WHERE u.name = :user::text AND u.id <> :id)

-- name: delete_grants
DELETE FROM user_grants WHERE "user" = :id

-- name: add_grant
INSERT INTO user_grants (id, "user", action, pattern, group_id, created_at)
VALUES (:id, :user, :action, :pattern, :group, :created)
ON CONFLICT DO NOTHING

-- name: delete_grant
DELETE FROM user_grants WHERE id = :id AND "user" = :user
