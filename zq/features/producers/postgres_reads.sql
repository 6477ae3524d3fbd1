-- Producers as readers see them.

-- name: producers
SELECT name, epoch, last, at, first, key, step FROM producers
WHERE name > :after ORDER BY name LIMIT :limit

-- name: producer
SELECT name, epoch, last, at, first, key, step FROM producers WHERE name = :producer
