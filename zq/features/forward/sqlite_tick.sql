-- Lanes and the jobs that have numbers.

-- name: lanes
SELECT json_group_array(json_array(id, name, json(rule), epoch, next, heir,
    json(iif(paused, 'true', 'false')), json(iif(declared, 'true', 'false'))))
FROM (SELECT * FROM lanes ORDER BY name)

-- name: lane
SELECT json_array(id, name, json(rule), epoch, next, heir,
    json(iif(paused, 'true', 'false')), json(iif(declared, 'true', 'false')))
FROM lanes WHERE name = :lane

-- name: put_lane
INSERT INTO lanes (name, rule, epoch, next, declared) VALUES (:lane, :rule, :epoch, 1, :declared)
ON CONFLICT (name) DO UPDATE SET rule = excluded.rule, declared = excluded.declared

-- name: pause_lane
UPDATE lanes SET paused = :paused WHERE name = :lane

-- name: drop_lane
DELETE FROM lanes WHERE id = :id

-- name: note_next
UPDATE lanes SET next = :next WHERE id = :id

-- name: name_heir
UPDATE lanes SET heir = :heir WHERE id = :id

-- name: begin_epoch
UPDATE lanes SET epoch = :epoch, next = :next, heir = NULL WHERE id = :id

-- name: batches_of_lane
SELECT json_group_array(json_array(first, json(keys)))
FROM (SELECT first, keys FROM lane_batches WHERE lane = :id AND first <= :upto ORDER BY first)

-- name: put_batch
INSERT INTO lane_batches (lane, first, keys) VALUES (:id, :first, :keys)

-- name: drop_batches
DELETE FROM lane_batches WHERE lane = :id AND first <= :upto

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
