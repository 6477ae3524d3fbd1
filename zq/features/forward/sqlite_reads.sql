-- name: under_way
SELECT json_group_array(json_array(lane, jobs, oldest)) FROM (
    SELECT lane, sum(json_array_length(keys)) AS jobs,
        min((SELECT min(key.value) FROM json_each(keys) AS key)) AS oldest
    FROM lane_batches GROUP BY lane)

-- name: new_jobs
-- The ready jobs of some queues from a key on, of those in no line: their number and the first key by
-- queue. It steps from one priority to the next, and reads no older ones.
WITH RECURSIVE heads (queue, priority) AS (
    SELECT q.value, (
        SELECT min(priority) FROM jobs WHERE status = {ready} AND held = 0 AND queue = q.value)
    FROM json_each(:queues) AS q
    UNION ALL
    SELECT queue, (
        SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue AND priority > heads.priority)
    FROM heads WHERE priority IS NOT NULL LIMIT 4000
)
SELECT json_group_array(json_array(queue, jobs, oldest)) FROM (
    SELECT heads.queue, count(*) AS jobs, min(jobs.id) AS oldest
    FROM heads CROSS JOIN jobs ON status = {ready} AND held = 0 AND jobs.queue = heads.queue
        AND jobs.priority = heads.priority AND jobs.id >= :first
    GROUP BY heads.queue)

-- name: waiting_bytes
-- The bytes of the payloads of unfinished jobs in some queues, with keys from :first on and before :end.
SELECT cast(total(payload_size) AS INTEGER) FROM jobs
WHERE status <= {in_flight} AND queue IN (SELECT value FROM json_each(:queues))
    AND id >= :first AND id < :end

-- name: has_old
-- Whether a job of some queues, with a key up to :upto, has been ready since a date. It steps from one
-- priority to the next, and reads no newer ones. Of lines, it reads the first job of each.
WITH RECURSIVE heads (queue, priority) AS (
    SELECT q.value, (
        SELECT min(priority) FROM jobs WHERE status = {ready} AND held = 0 AND queue = q.value)
    FROM json_each(:queues) AS q
    UNION ALL
    SELECT queue, (
        SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue AND priority > heads.priority)
    FROM heads WHERE priority IS NOT NULL LIMIT 4000
)
SELECT EXISTS (
        SELECT 1 FROM heads CROSS JOIN jobs ON status = {ready} AND held = 0
            AND jobs.queue = heads.queue AND jobs.priority = heads.priority
            AND jobs.id <= :upto AND ready_at <= :since)
    OR EXISTS (
        SELECT 1 FROM json_each(:queues) AS q
        CROSS JOIN lines ON lines.queue = q.value AND head > 0 AND head <= :upto
        CROSS JOIN jobs ON jobs.id = head AND ready_at <= :since)
