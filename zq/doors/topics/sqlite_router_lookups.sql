-- What is looked up of routers. Their number is bounded.

-- name: router
SELECT json_array(name, json(config), forwarded) FROM topic_routers WHERE name = :name

-- name: count_routers
SELECT count(*) FROM topic_routers

-- name: routers_page
SELECT json_group_array(json_array(name, json(config), forwarded)) FROM (
    SELECT * FROM topic_routers
    WHERE name > :after AND name >= :low AND (:high IS NULL OR name < :high)
        AND (:source IS NULL OR source = :source) AND (:dest IS NULL OR dest = :dest)
    ORDER BY name LIMIT :limit)
