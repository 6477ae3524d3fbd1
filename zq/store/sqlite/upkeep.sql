-- The statements outside the tick: at start-up and while idle.

-- name: read_left_in_flight
-- Jobs in flight by streams when the server stopped, with their queues. No stream outlives it, nor
-- those that shared a database of PostgreSQL before it was moved here. A claimed job does (its holder
-- is 0), unless its queue says otherwise: by its settings, or else as a topic.
SELECT json_group_array(json_array(jobs.id, jobs.queue)) FROM jobs
LEFT JOIN queue_settings AS s ON s.queue = jobs.queue
LEFT JOIN topics ON topics.name = jobs.queue AND topics.config ->> 'type' = 'queue'
WHERE status = {in_flight} AND status <> {ready}
    AND (holder > 0 OR holder = 0
        AND coalesce(s.settings ->> 'leases_survive', topics.config ->> 'leases_durable', 1) = 0)

-- name: read_begun
-- The oldest jobs that a stream holds: so many its worker has begun.
SELECT json_group_array(id) FROM (
    SELECT id FROM jobs WHERE status = {in_flight} AND status <> {ready} AND holder = :holder
    ORDER BY dequeued_at, id LIMIT :concurrency)

-- name: give_back_all
UPDATE jobs SET status = {ready}, {no_lease} WHERE id IN {keys} AND status = {in_flight}

-- name: count_claimed
-- Jobs in flight, without those that leave for another server: no claimant has them.
SELECT cast(total(n) AS INTEGER) - (
    SELECT count(*) FROM jobs WHERE status = {in_flight} AND status <> {ready} AND holder < 0)
FROM queue_counts WHERE status = {in_flight}

-- name: groups_of
SELECT json_group_array(json_array(queue, group_id))
FROM jobs WHERE id IN {keys} AND group_id IS NOT NULL

-- name: forget_empty_queues
DELETE FROM queue_counts WHERE n = 0

-- name: write_meta
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING

-- name: rewrite_meta
INSERT INTO meta (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: read_all_held
-- Every job in flight with its queue.
SELECT json_group_array(json_array(id, queue)) FROM jobs
WHERE status = {in_flight} AND status <> {ready}

-- name: highest_key
SELECT ifnull(max(id), 0) FROM jobs

-- name: touch
-- Changes nothing, but writes a page.
UPDATE meta SET value = value WHERE name = 'high_water'
