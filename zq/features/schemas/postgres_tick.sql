-- Changes of schemas, and the schemas of queues that jobs enter.

-- name: put_schema
INSERT INTO schemas (queue, body, version, updated_at) VALUES (:queue, :body, 1, :now)
ON CONFLICT (queue) DO UPDATE
SET body = excluded.body, version = schemas.version + 1, updated_at = excluded.updated_at
RETURNING version

-- name: read_schemas_of
SELECT queue, body FROM schemas WHERE queue = ANY (:queues::text[])
