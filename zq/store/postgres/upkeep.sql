-- The statements outside the tick: at a start.

-- name: read_left_in_flight
-- Jobs in flight by the holders of servers that have stopped, with their queues. No stream outlives them;
-- a claimed job does (its holder is 0), unless its queue says otherwise: by its settings, or else as a
-- topic. That holds with :claims alone: no server is left that it may have been claimed by.
SELECT id, queue FROM jobs
WHERE status = {in_flight} AND status <> {ready}
    AND holder >> {holder_bits} = ANY (:slots::bigint[])
    AND (holder <> 0 OR (:claims::boolean AND coalesce(
        (SELECT s.settings ->> 'leases_survive' FROM queue_settings AS s WHERE s.queue = jobs.queue),
        (SELECT t.config ->> 'leases_durable' FROM topics AS t
            WHERE t.name = jobs.queue AND t.config ->> 'type' = 'queue')) = 'false'))

-- name: read_begun
-- The oldest jobs that a stream holds: so many its worker has begun.
SELECT id FROM jobs WHERE status = {in_flight} AND status <> {ready} AND holder = :holder
ORDER BY dequeued_at, id LIMIT :concurrency

-- name: give_back_all
UPDATE jobs SET status = {ready}, {no_lease} WHERE id = {keys} AND +status = {in_flight}

-- name: count_claimed
-- Jobs in flight, without those that leave for another server: no claimant has them.
SELECT coalesce(sum(n), 0)::bigint - (
    SELECT count(*) FROM jobs WHERE status = {in_flight} AND status <> {ready} AND holder < 0)
FROM queue_counts WHERE status = {in_flight}

-- name: groups_of
SELECT DISTINCT queue, group_id FROM jobs WHERE id = {keys} AND group_id || '' IS NOT NULL

-- name: highest_key
SELECT coalesce((SELECT id FROM jobs ORDER BY id DESC LIMIT 1), 0)

-- name: forget_empty_queues
DELETE FROM queue_counts WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM (SELECT queue, status FROM queue_totals WHERE n = 0 OFFSET 0) AS t
    CROSS JOIN LATERAL (
        SELECT ctid FROM queue_counts AS c
        WHERE c.queue = ANY (ARRAY[t.queue]) AND c.status = t.status OFFSET 0) AS c))

-- name: count_start
INSERT INTO meta (name, value) VALUES ('starts', '1')
ON CONFLICT (name) DO UPDATE SET value = (meta.value::bigint + 1)::text RETURNING value
