-- Producers and their last numbers.

-- name: read_producers
SELECT json_group_array(json_array(name, epoch, last, at, first, key, step)) FROM producers
WHERE name IN (SELECT value FROM json_each(:names))

-- name: write_producers
INSERT INTO producers (name, epoch, last, at, first, key, step)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
FROM json_each(:producers) WHERE true
ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, last = excluded.last, at = excluded.at,
    first = excluded.first, key = excluded.key, step = excluded.step

-- name: read_ends
-- The ends of earlier epochs: :epochs lists [name, epoch].
SELECT json_group_array(json_array(name, epoch, last)) FROM producer_ends
WHERE (name, epoch) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:epochs))

-- name: write_ends
-- :ends lists [name, epoch, last]. An epoch that has come back ends later than it did.
INSERT OR REPLACE INTO producer_ends (name, epoch, last)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:ends)

-- name: drop_ends
-- Keep the latest :kept ends of each name.
DELETE FROM producer_ends WHERE id IN (
    SELECT older.id FROM json_each(:names) CROSS JOIN producer_ends AS older ON older.id IN (
        SELECT id FROM producer_ends WHERE name = value ORDER BY id DESC LIMIT -1 OFFSET :kept))

-- name: delete_ends
DELETE FROM producer_ends WHERE name = :producer
