-- The statements of routers.

-- name: routers_behind
-- The routers that writes to these topics pass, and those that the copies pass.
WITH RECURSIVE behind (topic) AS (
    SELECT unnest(:topics::text[]) COLLATE "C"
    UNION
    SELECT next.dest FROM behind CROSS JOIN LATERAL (
        SELECT dest FROM topic_routers WHERE source = ANY (ARRAY[topic]) OFFSET 0) AS next)
SELECT name, config, forwarded FROM behind JOIN topic_routers ON source = ANY (ARRAY[topic])

-- name: routers_around
-- The routers that are connected with these topics, against their direction too.
WITH RECURSIVE around (topic) AS (
    SELECT unnest(:topics::text[]) COLLATE "C"
    UNION
    SELECT found.topic FROM around CROSS JOIN LATERAL (
        SELECT dest AS topic FROM topic_routers WHERE source = ANY (ARRAY[around.topic])
        UNION ALL
        SELECT source FROM topic_routers WHERE dest = ANY (ARRAY[around.topic])) AS found)
SELECT name, config, forwarded FROM around JOIN topic_routers ON source = ANY (ARRAY[topic])

-- name: routers_named
SELECT name, config, forwarded FROM topic_routers WHERE name = :router

-- name: count_routers
SELECT count(*) FROM (SELECT 1 FROM topic_routers ORDER BY name) AS routers

-- name: count_forwarded
-- :counts lists [name, copies].
UPDATE topic_routers SET forwarded = forwarded + c.n
FROM unnest(:counts.0::text[], :counts.1::bigint[]) AS c (name, n)
WHERE topic_routers.name = ANY (ARRAY[c.name])

-- name: delete_routers_of
DELETE FROM topic_routers WHERE name = ANY (ARRAY(
    SELECT name FROM topic_routers WHERE source = :topic
    UNION ALL SELECT name FROM topic_routers WHERE dest = :topic))
RETURNING name
