-- The statements of routers.

-- name: routers_behind
-- The routers that writes to these topics pass, and those that the copies pass.
WITH RECURSIVE behind(topic) AS (
    SELECT value FROM json_each(:topics)
    UNION
    SELECT dest FROM behind CROSS JOIN topic_routers ON source = topic)
SELECT json_group_array(json_array(name, json(config), forwarded))
FROM behind CROSS JOIN topic_routers ON source = topic

-- name: routers_around
-- The routers that are connected with these topics, against their direction too.
WITH RECURSIVE around(topic) AS (
    SELECT value FROM json_each(:topics)
    UNION
    SELECT dest FROM around CROSS JOIN topic_routers ON source = topic
    UNION
    SELECT source FROM around CROSS JOIN topic_routers ON dest = topic)
SELECT json_group_array(json_array(name, json(config), forwarded))
FROM around CROSS JOIN topic_routers ON source = topic

-- name: routers_named
SELECT json_group_array(json_array(name, json(config), forwarded))
FROM topic_routers WHERE name = :router

-- name: count_routers
SELECT count(*) FROM topic_routers

-- name: count_forwarded
-- :counts lists [name, copies].
UPDATE topic_routers SET forwarded = forwarded + c.value ->> 1
FROM json_each(:counts) AS c
WHERE name = c.value ->> 0

-- name: delete_routers_of
DELETE FROM topic_routers WHERE source = :topic OR dest = :topic
RETURNING name

-- name: clear_topic_routers
DELETE FROM topic_routers
