-- Statements that read alike in both stores.

-- name: write_router
INSERT INTO topic_routers (name, source, dest, config)
VALUES (:router, :source, :dest, :config::json)
ON CONFLICT (name) DO UPDATE
SET source = excluded.source, dest = excluded.dest, config = excluded.config

-- name: delete_router
DELETE FROM topic_routers WHERE name = :router
