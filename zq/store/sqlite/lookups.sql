-- Queries of the readers. CONDITIONS stands for the filter of a request.

-- name: list_ascending
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM jobs WHERE id > :after AND CONDITIONS ORDER BY id LIMIT :limit OFFSET :skip)

-- name: list_descending
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM jobs WHERE id < :after AND CONDITIONS ORDER BY id DESC LIMIT :limit OFFSET :skip)

-- name: list_keys
SELECT json_group_array(id) FROM (
    SELECT id FROM jobs WHERE id > :after AND id <= :upto AND CONDITIONS ORDER BY id LIMIT :limit)

-- name: get
SELECT json_group_array({job_row}) FROM jobs WHERE id = :key AND CONDITIONS

-- name: get_owner
SELECT json_group_array({job_row}) FROM jobs
WHERE owns_key = 1 AND key_lock = :lock AND CONDITIONS

-- name: counts
SELECT json_group_array(json_array(queue, status, n)) FROM queue_counts WHERE n > 0

-- name: counts_of
SELECT json_group_array(json_array(queue, status, n))
FROM json_each(:queues) AS q CROSS JOIN queue_counts ON queue = q.value WHERE n > 0

-- name: purged_counts
-- Rows that readers no longer see, although they are not deleted yet.
SELECT json_group_array(json_array(queue, status, n)) FROM (
    SELECT queue, status, count(*) AS n FROM jobs
    WHERE purge_at IS NOT NULL AND purge_at <= :now GROUP BY queue, status)

-- name: ready_heads
-- One seek finds the first ready job of each queue. Another finds whether it is certainly the oldest:
-- there are no other priorities, and it has been ready since it was created.
SELECT json_group_array(json_array(head.queue, head.ready_at,
    head.ready_at <= (head.id >> {key_bits}) + {key_epoch} AND head.priority = (
        SELECT max(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = head.queue)))
FROM json_each(:queues) AS q
CROSS JOIN jobs AS head ON head.id = (
    SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND jobs.queue = q.value
    ORDER BY priority, id LIMIT 1)

-- name: oldest_ready
-- Steps from one priority to the next of each queue, so that only the requested rows are read.
WITH RECURSIVE heads (queue, priority) AS (
    SELECT q.value, (
        SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND queue = q.value)
    FROM json_each(:queues) AS q
    UNION ALL
    SELECT queue, (
        SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue AND priority > heads.priority)
    FROM heads WHERE priority IS NOT NULL LIMIT :most
)
SELECT json_group_array(json_array(queue, ready_at)) FROM (
    SELECT queue, min((
        SELECT min(ready_at) FROM (
            SELECT ready_at FROM jobs
            WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue AND priority = heads.priority
            ORDER BY id LIMIT :depth))) AS ready_at
    FROM heads WHERE priority IS NOT NULL GROUP BY queue)

-- name: oldest_in_lines
-- Of each queue's lines, the :depth ones whose first jobs were stored first.
SELECT json_group_array(json_array(queue, ready_at)) FROM (
    SELECT q.value AS queue, (
        SELECT min(ready_at) FROM (
            SELECT head FROM lines WHERE lines.queue = q.value AND head > 0
            ORDER BY head LIMIT :depth) AS l
        CROSS JOIN jobs ON jobs.id = l.head) AS ready_at
    FROM json_each(:queues) AS q WHERE EXISTS (SELECT 1 FROM lines))
WHERE ready_at IS NOT NULL

-- name: payloads
SELECT job_id, body, checksum FROM payloads WHERE job_id IN {keys}

-- name: results
SELECT job_id, body, checksum FROM results WHERE job_id IN {keys}

-- name: errors_ascending
-- Row by row, since their texts may be large: the caller stops when it has enough.
SELECT attempt, message, error_type, backtrace, dequeued_at, failed_at, signature, worker,
    checksum
FROM errors WHERE job_id = :key AND attempt > :after ORDER BY attempt LIMIT :limit

-- name: errors_descending
SELECT attempt, message, error_type, backtrace, dequeued_at, failed_at, signature, worker,
    checksum
FROM errors WHERE job_id = :key AND attempt < :after ORDER BY attempt DESC LIMIT :limit

-- name: last_errors
SELECT job_id, signature, message, error_type, backtrace, checksum FROM errors
WHERE (job_id, attempt) IN (
    SELECT job_id, max(attempt) FROM errors WHERE job_id IN {keys} GROUP BY job_id)

-- name: key_range
SELECT ifnull((SELECT min(id) FROM jobs), 0), ifnull((SELECT max(id) FROM jobs), 0)

-- name: settings
SELECT settings, checksum FROM queue_settings WHERE queue = :queue

-- name: all_settings
SELECT queue, settings, checksum FROM queue_settings

-- name: existing
SELECT id FROM jobs WHERE id IN {keys}

-- name: due_between
-- How many dates of jobs and of schedules, and how many ends of pauses, lie in a stretch of time.
SELECT
    (SELECT count(*) FROM jobs
        WHERE status = {scheduled} AND due_at IS NULL AND ready_at > :after AND ready_at <= :upto),
    (SELECT count(*) FROM cron_entries
        WHERE next_at IS NOT NULL AND next_at > :after AND next_at <= :upto),
    (SELECT count(*) FROM queue_settings
        WHERE paused_until IS NOT NULL AND paused_until > :after AND paused_until <= :upto)

-- name: leases
-- The jobs whose leases end first. CONDITIONS stands for the reach of the caller.
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM jobs WHERE lease_until IS NOT NULL AND CONDITIONS
    ORDER BY lease_until LIMIT :limit)
