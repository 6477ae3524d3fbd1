-- Lanes and the jobs that have numbers.

-- name: lanes
SELECT id, name, rule, epoch, next, heir, paused, declared FROM lanes ORDER BY name

-- name: leaving
-- The queues of all lanes, as one list.
SELECT coalesce(json_agg(queue), '[]')::text
FROM lanes CROSS JOIN json_array_elements_text(rule -> 'queues') AS queue

-- name: lane
SELECT json_build_array(id, name, rule, epoch, next, heir, paused, declared)::text
FROM lanes WHERE name = :lane

-- name: put_lane
INSERT INTO lanes (name, rule, epoch, next, declared)
VALUES (:lane, :rule::json, :epoch, 1, :declared::integer::boolean)
ON CONFLICT (name) DO UPDATE SET rule = excluded.rule, declared = excluded.declared

-- name: pause_lane
UPDATE lanes SET paused = :paused::integer::boolean WHERE name = :lane

-- name: batches_of_lane
SELECT first, keys FROM lane_batches WHERE lane = :id AND first <= :upto ORDER BY first

-- name: read_followers
-- Up to :limit jobs behind the head of each group, in their order, whatever state they are in.
-- :groups lists [queue, group].
SELECT {job_row} FROM jobs WHERE id = ANY (ARRAY(
    SELECT follower.id FROM unnest(:groups.0::text[], :groups.1::text[]) AS g (q, name)
    CROSS JOIN LATERAL (
        SELECT id FROM jobs WHERE queue = g.q AND group_id = g.name AND held & 1 = 1
            AND status <= {in_flight}
        ORDER BY id LIMIT :limit) AS follower))

-- name: lane_depths
-- The queues with unfinished jobs whose names begin with :prefix, and how many these are.
SELECT queue, sum(n)::bigint FROM queue_counts
WHERE queue >= :prefix::text AND starts_with(queue, :prefix::text) AND status <= {in_flight}
GROUP BY queue

-- name: lane_bytes
-- Looks at up to :limit jobs behind a key. The bytes of the payloads of those that are unfinished and in
-- some queues, and the last key.
SELECT coalesce(sum(payload_size) FILTER (
        WHERE status <= {in_flight} AND queue = ANY (:queues::text[])), 0)::bigint, max(id)
FROM (SELECT id, status, queue, payload_size FROM jobs WHERE id > :after ORDER BY id LIMIT :limit) AS seen

-- name: oldest_of_lane
-- The oldest ready jobs of some queues, with keys from :first to :upto, that have been
-- ready since a date, and their bytes.
SELECT id, payload_size FROM jobs
WHERE id >= :first AND id <= :upto AND status = {ready} AND ready_at <= :since AND queue = ANY (:queues::text[])
ORDER BY id LIMIT :limit
