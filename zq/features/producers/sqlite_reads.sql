-- Producers as readers see them.

-- name: producers
SELECT json_group_array(json_array(name, epoch, last, at, first, key, step))
FROM (SELECT * FROM producers WHERE name > :after ORDER BY name LIMIT :limit)

-- name: producer
SELECT json_group_array(json_array(name, epoch, last, at, first, key, step)) FROM producers WHERE name = :producer
