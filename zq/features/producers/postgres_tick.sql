-- Producers and their last numbers.

-- name: read_producers
SELECT name, epoch, last, at, first, key, step FROM producers WHERE name = ANY (:names::text[])

-- name: write_producers
INSERT INTO producers (name, epoch, last, at, first, key, step)
SELECT * FROM unnest(:producers.0::text[], :producers.1::text[], :producers.2::bigint[],
    :producers.3::bigint[], :producers.4::bigint[], :producers.5::bigint[], :producers.6::bigint[])
ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, last = excluded.last, at = excluded.at,
    first = excluded.first, key = excluded.key, step = excluded.step

-- name: read_ends
-- The ends of earlier epochs: :epochs lists [name, epoch].
SELECT p.name, p.epoch, p.last FROM unnest(:epochs.0::text[], :epochs.1::text[]) AS e (name, epoch)
CROSS JOIN LATERAL (
    SELECT name, epoch, last FROM producer_ends
    WHERE producer_ends.name = e.name AND producer_ends.epoch BETWEEN e.epoch AND e.epoch
    ORDER BY epoch LIMIT 1) AS p

-- name: write_ends
-- :ends lists [name, epoch, last]. An epoch that has come back ends later than it did.
INSERT INTO producer_ends (name, epoch, last)
SELECT name, epoch, last
FROM unnest(:ends.0::text[], :ends.1::text[], :ends.2::bigint[]) AS e (name, epoch, last)
ON CONFLICT (name, epoch) DO UPDATE SET id = DEFAULT, last = excluded.last

-- name: drop_ends
-- Keep the latest :kept ends of each name.
DELETE FROM producer_ends WHERE ctid = ANY (ARRAY(
    SELECT older.ctid FROM unnest(:names::text[]) AS n (name) CROSS JOIN LATERAL (
        SELECT ctid FROM producer_ends WHERE producer_ends.name = n.name
        ORDER BY id DESC OFFSET :kept) AS older))

-- name: delete_ends
DELETE FROM producer_ends WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM producer_ends WHERE name = ANY (ARRAY[:producer]) ORDER BY name, id))
