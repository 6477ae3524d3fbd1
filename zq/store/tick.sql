-- The statements of the tick. Rows go in as one JSON parameter and come out as one JSON value, so
-- that the number of statements, and of times the GIL changes hands, does not grow with the jobs.

-- name: read_held
-- Jobs in flight among the keys: what a settlement or a return needs to know of them.
SELECT json_group_array({brief_row})
FROM (SELECT value AS key FROM json_each(:keys)) CROSS JOIN jobs ON jobs.id = key
WHERE status = {in_flight}

-- name: read_briefs
-- The same of jobs in any state: what a deletion needs to know.
SELECT json_group_array({brief_row})
FROM jobs WHERE id IN {keys}

-- name: read_jobs
SELECT json_group_array({job_row}) FROM jobs WHERE id IN {keys}

-- name: read_stale
-- :leases maps a key to the delivery that is acknowledged. The jobs that are there, but of which this
-- delivery has ended.
SELECT json_group_array(json_array(jobs.id, queue))
FROM json_each(:leases) AS l
JOIN jobs ON jobs.id = CAST(l.key AS INTEGER)
WHERE (status <> {in_flight} OR deliveries <> l.value) AND (purge_at IS NULL OR purge_at > :now)

-- name: delete_jobs
DELETE FROM jobs WHERE id IN {keys}

-- name: delete_payloads
DELETE FROM payloads WHERE job_id IN {keys}

-- name: delete_results
DELETE FROM results WHERE job_id IN {keys}

-- name: delete_errors
DELETE FROM errors WHERE job_id IN {keys}

-- name: complete
-- :purges maps a key to its purge_at. An "active" lock ends here.
UPDATE jobs SET status = {completed}, holder = NULL, finished_at = :now, purge_at = p.value,
    owns_key = owns_key AND unique_while <> {while_active}
FROM json_each(:purges) AS p
WHERE jobs.id = CAST(p.key AS INTEGER) AND status = {in_flight}

-- name: complete_with_results
-- :completions lists [key, purge_at, result_size, result or null where it lies beside].
UPDATE jobs SET status = {completed}, holder = NULL, finished_at = :now, purge_at = c.value ->> 1,
    result_size = c.value ->> 2, result = c.value ->> 3,
    owns_key = owns_key AND unique_while <> {while_active}
FROM json_each(:completions) AS c
WHERE jobs.id = c.value ->> 0 AND status = {in_flight}

-- name: fail
-- :verdicts lists [key, status, attempts, ready_at or null, purge_at or null].
UPDATE jobs SET status = v.value ->> 1, holder = NULL, attempts = v.value ->> 2, failed_at = :now,
    ready_at = ifnull(v.value ->> 3, ready_at), purge_at = v.value ->> 4,
    finished_at = iif(v.value ->> 4 IS NULL, NULL, :now),
    owns_key = owns_key AND NOT (v.value ->> 1 = {dead} AND unique_while = {while_active})
FROM json_each(:verdicts) AS v
WHERE jobs.id = v.value ->> 0 AND status = {in_flight}

-- name: give_back
-- :holders maps a key to the holder whose stream has ended.
UPDATE jobs SET status = {ready}, holder = NULL
FROM json_each(:holders) AS h
WHERE jobs.id = CAST(h.key AS INTEGER) AND status = {in_flight} AND holder = h.value

-- name: restore_locks
-- "queued" owners that wait again take their key back, unless the index says another has it by now.
UPDATE OR IGNORE jobs SET owns_key = 1
WHERE id IN {keys} AND owns_key = 0 AND unique_while = {while_queued}
    AND status IN ({scheduled}, {ready})

-- name: change
-- :changes lists [key, queue, priority, status, ready_at, options as an object or null].
UPDATE jobs SET queue = c.value ->> 1, priority = c.value ->> 2, status = c.value ->> 3,
    ready_at = c.value ->> 4, options = c.value ->> 5
FROM json_each(:changes) AS c
WHERE jobs.id = c.value ->> 0 AND status IN ({scheduled}, {ready}, {in_flight})

-- name: cancel
-- :purges maps a key to its purge_at. The key of a cancelled job is free.
UPDATE jobs SET status = {cancelled}, holder = NULL, finished_at = :now, purge_at = p.value,
    owns_key = 0
FROM json_each(:purges) AS p
WHERE jobs.id = CAST(p.key AS INTEGER) AND status IN ({scheduled}, {ready})

-- name: cancel_by_force
UPDATE jobs SET status = {cancelled}, holder = NULL, finished_at = :now, purge_at = p.value,
    owns_key = 0
FROM json_each(:purges) AS p
WHERE jobs.id = CAST(p.key AS INTEGER) AND status IN ({scheduled}, {ready}, {in_flight})

-- name: retain
UPDATE jobs SET purge_at = :purge_at
WHERE id = :key AND status IN ({completed}, {dead}, {cancelled})

-- name: replace_payloads
-- :payloads lists [key, payload_size, payload or null where it lies beside].
UPDATE jobs SET payload_size = p.value ->> 1, payload = p.value ->> 2
FROM json_each(:payloads) AS p
WHERE jobs.id = p.value ->> 0 AND status IN ({scheduled}, {ready})

-- name: read_owners
-- NAMES stands for one parameter a key: json_each would cut a key short at a NUL.
SELECT json_group_array({job_row}) FROM jobs
WHERE owns_key = 1 AND unique_key IN (NAMES)

-- name: release_locks
UPDATE jobs SET owns_key = 0 WHERE id IN {keys}

-- name: read_due
SELECT json_group_array(json_array(id, queue)) FROM (
    SELECT id, queue FROM jobs WHERE status = {scheduled} AND ready_at <= :now
    ORDER BY ready_at, id LIMIT :limit)

-- name: promote
UPDATE jobs SET status = {ready} WHERE id IN {keys} AND status = {scheduled}

-- name: deadlines
-- In the order of `zq.model.commands.Due`.
SELECT
    (SELECT ready_at FROM jobs WHERE status = {scheduled} ORDER BY ready_at, id LIMIT 1),
    (SELECT purge_at FROM jobs WHERE purge_at IS NOT NULL ORDER BY purge_at LIMIT 1)

-- name: read_purgeable
SELECT json_group_array(id) FROM (
    SELECT id FROM jobs WHERE purge_at IS NOT NULL AND purge_at <= :now LIMIT :limit)

-- name: claim_any
-- The index gives the keys, in order; from the rows only what is wanted is read.
SELECT json_group_array({job_row}) FROM (
    SELECT id AS key FROM jobs WHERE status = {ready} AND held = 0 ORDER BY priority, id LIMIT :limit)
CROSS JOIN jobs ON jobs.id = key

-- name: claim_arm
-- One queue's part of a claim; several are joined by UNION ALL and merged in index order.
SELECT id AS key, priority AS urgency FROM jobs
WHERE status = {ready} AND held = 0 AND queue = :queue

-- name: claim_merged
-- ARMS stands for the arms.
SELECT json_group_array({job_row}) FROM (
    ARMS
    ORDER BY urgency, key LIMIT :limit)
CROSS JOIN jobs ON jobs.id = key

-- name: ready_queues
-- Queues with ready jobs whose names match :pattern and so begin with :prefix: one seek a queue.
WITH RECURSIVE found (queue) AS (
    SELECT (SELECT queue FROM jobs
        WHERE status = {ready} AND held = 0 AND queue >= :prefix ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM jobs
        WHERE status = {ready} AND held = 0 AND queue > found.queue ORDER BY queue LIMIT 1)
    FROM found WHERE found.queue GLOB :pattern)
SELECT json_group_array(queue) FROM found WHERE queue GLOB :pattern

-- name: take
-- :holders maps a key to its new holder. A "queued" lock ends here.
UPDATE jobs SET status = {in_flight}, holder = h.value, deliveries = deliveries + 1,
    dequeued_at = :now, owns_key = owns_key AND unique_while <> {while_queued}
FROM json_each(:holders) AS h
WHERE jobs.id = CAST(h.key AS INTEGER) AND status = {ready}

-- name: count
-- :deltas lists [queue, status, change].
INSERT INTO queue_counts (queue, status, n)
SELECT d.value ->> 0, d.value ->> 1, (d.value ->> 2) + ifnull(c.n, 0)
FROM json_each(:deltas) AS d
LEFT JOIN queue_counts AS c ON c.queue = d.value ->> 0 AND c.status = d.value ->> 1
WHERE true
ON CONFLICT (queue, status) DO UPDATE SET n = excluded.n

-- name: clear_jobs
DELETE FROM jobs

-- name: clear_payloads
DELETE FROM payloads

-- name: clear_results
DELETE FROM results

-- name: clear_errors
DELETE FROM errors

-- name: clear_counts
DELETE FROM queue_counts

-- name: count_all
SELECT cast(total(n) AS INTEGER) FROM queue_counts

-- name: raise_high_water
UPDATE meta SET value = :key WHERE name = 'high_water'
