-- Queries of the readers. CONDITIONS stands for the filter of a request. Where SQLite's rows have a
-- checksum, there is NULL.

-- name: list_ascending
SELECT {job_row} FROM jobs WHERE id > :after AND CONDITIONS ORDER BY id LIMIT :limit OFFSET :skip

-- name: list_descending
SELECT {job_row} FROM jobs WHERE id < :after AND CONDITIONS ORDER BY id DESC LIMIT :limit OFFSET :skip

-- name: list_keys
SELECT id FROM jobs WHERE id > :after AND id <= :upto AND CONDITIONS ORDER BY id LIMIT :limit

-- name: list_ascending_by_status
-- The first jobs of each status, found by its index, and of these the first ones.
SELECT {job_row} FROM unnest(:filter_statuses::smallint[]) AS s (one)
CROSS JOIN LATERAL (
    SELECT * FROM jobs
    WHERE status = ANY (ARRAY[s.one]) AND status <> {ready}
        AND (status, id) > (s.one, :after) AND CONDITIONS
    ORDER BY status, id LIMIT :limit::bigint + :skip::bigint) AS jobs
ORDER BY jobs.id LIMIT :limit OFFSET :skip

-- name: list_descending_by_status
SELECT {job_row} FROM unnest(:filter_statuses::smallint[]) AS s (one)
CROSS JOIN LATERAL (
    SELECT * FROM jobs
    WHERE status = ANY (ARRAY[s.one]) AND status <> {ready}
        AND (status, id) < (s.one, :after) AND CONDITIONS
    ORDER BY status DESC, id DESC LIMIT :limit::bigint + :skip::bigint) AS jobs
ORDER BY jobs.id DESC LIMIT :limit OFFSET :skip

-- name: list_keys_by_status
SELECT jobs.id FROM unnest(:filter_statuses::smallint[]) AS s (one)
CROSS JOIN LATERAL (
    SELECT id FROM jobs
    WHERE status = ANY (ARRAY[s.one]) AND status <> {ready}
        AND (status, id) > (s.one, :after) AND (status, id) <= (s.one, :upto) AND CONDITIONS
    ORDER BY status, id LIMIT :limit) AS jobs
ORDER BY jobs.id LIMIT :limit

-- name: get
SELECT {job_row} FROM jobs WHERE id = :key AND CONDITIONS

-- name: get_owner
SELECT {job_row} FROM jobs WHERE owns_key AND key_lock = :lock AND CONDITIONS

-- name: counts
SELECT queue, status, n FROM queue_totals WHERE n > 0

-- name: counts_of
SELECT queue, status, n FROM queue_totals WHERE queue = ANY (:queues::text[]) AND n > 0

-- name: purged_counts
-- Rows that readers no longer see, although they are not deleted yet.
SELECT queue, status, count(*) FROM jobs
WHERE purge_at IS NOT NULL AND purge_at <= :now GROUP BY queue, status

-- name: ready_heads
-- One seek finds the first ready job of each queue. Another finds whether it is certainly the oldest:
-- there are no other priorities, and it has been ready since it was created.
SELECT q.name, head.ready_at,
    (head.ready_at <= (head.id >> {key_bits}) + {key_epoch} AND head.priority = (
        SELECT max(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = q.name))::integer
FROM unnest(:queues::text[]) AS q (name)
CROSS JOIN LATERAL (
    SELECT id, priority, ready_at FROM jobs
    WHERE status = {ready} AND held = 0 AND jobs.queue = q.name
    ORDER BY priority, id LIMIT 1) AS head

-- name: oldest_ready
-- Steps from one priority to the next of each queue, so that only the requested rows are read.
WITH RECURSIVE heads (queue, priority) AS (
    SELECT q.name, (SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND queue = q.name)
    FROM unnest(:queues::text[]) AS q (name)
    UNION ALL
    SELECT queue, (SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue
            AND priority > heads.priority)
    FROM heads WHERE priority IS NOT NULL
), first AS (SELECT * FROM heads LIMIT :most)
SELECT queue, min((
    SELECT min(ready_at) FROM (
        SELECT ready_at FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = first.queue
            AND priority = first.priority
        ORDER BY id LIMIT :depth) AS few))
FROM first WHERE priority IS NOT NULL GROUP BY queue

-- name: oldest_in_lines
-- Of each queue's lines, the :depth ones whose first jobs were stored first.
SELECT q.name, min(jobs.ready_at) FROM unnest(:queues::text[]) AS q (name)
CROSS JOIN LATERAL (
    SELECT head FROM lines WHERE lines.queue = q.name AND head > 0 ORDER BY head LIMIT :depth) AS l
JOIN jobs ON jobs.id = ANY (ARRAY[l.head])
GROUP BY 1

-- name: payloads
SELECT job_id, body FROM payloads WHERE job_id = {keys}

-- name: results
SELECT job_id, body FROM results WHERE job_id = {keys}

-- name: errors_ascending
SELECT attempt, message, error_type, backtrace, dequeued_at, failed_at, signature, worker,
    NULL
FROM errors WHERE job_id = :key AND attempt > :after ORDER BY attempt LIMIT :limit

-- name: errors_descending
SELECT attempt, message, error_type, backtrace, dequeued_at, failed_at, signature, worker,
    NULL
FROM errors WHERE job_id = :key AND attempt < :after ORDER BY attempt DESC LIMIT :limit

-- name: last_errors
SELECT DISTINCT ON (job_id) job_id, signature, message, error_type, NULL, NULL FROM errors
WHERE job_id = {keys} ORDER BY job_id, attempt DESC

-- name: key_range
SELECT coalesce((SELECT id FROM jobs ORDER BY id LIMIT 1), 0),
    coalesce((SELECT id FROM jobs ORDER BY id DESC LIMIT 1), 0)

-- name: settings
SELECT settings::text, NULL FROM queue_settings WHERE queue = :queue

-- name: all_settings
SELECT queue, settings::text, NULL FROM queue_settings

-- name: due_between
-- How many dates of jobs and of schedules, and how many ends of pauses, lie in a stretch of time.
SELECT
    (SELECT count(*) FROM jobs
        WHERE status = {scheduled} AND due_at IS NULL AND +ready_at > :after AND +ready_at <= :upto),
    (SELECT count(*) FROM cron_entries
        WHERE next_at IS NOT NULL AND next_at > :after AND next_at <= :upto),
    (SELECT count(*) FROM queue_settings
        WHERE paused_until IS NOT NULL AND paused_until > :after AND paused_until <= :upto)

-- name: leases
-- The jobs whose leases end first. CONDITIONS stands for the reach of the caller.
SELECT {job_row} FROM jobs WHERE lease_until IS NOT NULL AND CONDITIONS
ORDER BY lease_until LIMIT :limit
