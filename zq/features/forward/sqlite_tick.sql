-- Lanes and the jobs that have numbers.

-- name: lanes
SELECT json_group_array(json_array(id, name, json(rule), epoch, next, heir,
    json(iif(paused, 'true', 'false')), json(iif(declared, 'true', 'false'))))
FROM (SELECT * FROM lanes ORDER BY name)

-- name: leaving
-- The queues of all lanes, as one list.
SELECT json_group_array(queue.value) FROM lanes CROSS JOIN json_each(rule, '$.queues') AS queue

-- name: lane
SELECT json_array(id, name, json(rule), epoch, next, heir,
    json(iif(paused, 'true', 'false')), json(iif(declared, 'true', 'false')))
FROM lanes WHERE name = :lane

-- name: put_lane
INSERT INTO lanes (name, rule, epoch, next, declared) VALUES (:lane, :rule, :epoch, 1, :declared)
ON CONFLICT (name) DO UPDATE SET rule = excluded.rule, declared = excluded.declared

-- name: pause_lane
UPDATE lanes SET paused = :paused WHERE name = :lane

-- name: batches_of_lane
SELECT json_group_array(json_array(first, json(keys)))
FROM (SELECT first, keys FROM lane_batches WHERE lane = :id AND first <= :upto ORDER BY first)

-- name: read_followers
-- Up to :limit jobs behind the head of each group, in their order, whatever state they are in.
-- :groups lists [queue, group].
SELECT json_group_array({job_row}) FROM jobs WHERE id IN (
    SELECT follower.id FROM (
        SELECT value ->> 0 AS q, value ->> 1 AS g FROM json_each(:groups))
    CROSS JOIN jobs AS follower ON follower.id IN (
        SELECT id FROM jobs WHERE queue = q AND group_id = g AND held & 1 = 1
            AND status <= {in_flight}
        ORDER BY id LIMIT :limit))

-- name: lane_depths
-- The queues with unfinished jobs whose names begin with :prefix, and how many these are. No character
-- of a name has a special meaning in a pattern.
SELECT json_group_array(json_array(queue, n)) FROM (
    SELECT queue, sum(n) AS n FROM queue_counts
    WHERE queue >= :prefix AND queue GLOB :prefix || '*' AND status <= {in_flight} GROUP BY queue)

-- name: lane_bytes
-- Looks at up to :limit jobs behind a key. The bytes of the payloads of those that are unfinished and in
-- some queues, and the last key.
SELECT json_array(json_array(cast(total(iif(
        status <= {in_flight} AND queue IN (SELECT value FROM json_each(:queues)), payload_size, 0
    )) AS INTEGER), max(id)))
FROM (SELECT id, status, queue, payload_size FROM jobs WHERE id > :after ORDER BY id LIMIT :limit) AS seen

-- name: oldest_of_lane
-- The oldest ready jobs of some queues, with keys from :first to :upto, that have been
-- ready since a date, and their bytes. They are near
-- the beginning of the table, as a rule.
SELECT json_group_array(json_array(id, payload_size)) FROM (
    SELECT id, payload_size FROM jobs NOT INDEXED
    WHERE id >= :first AND id <= :upto AND status = {ready} AND ready_at <= :since
        AND queue IN (SELECT value FROM json_each(:queues))
    ORDER BY id LIMIT :limit)
