-- Lanes as readers see them.

-- name: under_way
SELECT lane, sum(json_array_length(keys))::bigint,
    min((SELECT min(key.value::bigint) FROM json_array_elements_text(keys) AS key))
FROM lane_batches GROUP BY lane

-- name: waiting_bytes
-- The bytes of the payloads of unfinished jobs in some queues, with keys from :first on and before :end.
SELECT coalesce(sum(payload_size), 0)::bigint FROM jobs
WHERE status <= {in_flight} AND queue = ANY (:queues::text[]) AND id >= :first AND id < :end

-- name: new_jobs
-- The ready jobs of some queues from a key on, of those in no line: their number and the first key by
-- queue. It steps from one priority to the next, and reads no older ones.
WITH RECURSIVE heads (queue, priority) AS (
    SELECT q.name, (
        SELECT min(priority) FROM jobs WHERE status = {ready} AND held = 0 AND queue = q.name)
    FROM unnest(:queues::text[]) AS q (name)
    UNION ALL
    SELECT queue, (
        SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue
            AND priority > heads.priority)
    FROM heads WHERE priority IS NOT NULL
), few AS (SELECT * FROM heads LIMIT 4000)
SELECT few.queue, sum(found.jobs)::bigint, min(found.oldest) FROM few
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, min(id) AS oldest FROM jobs
    WHERE status = {ready} AND held = 0 AND jobs.queue = few.queue
        AND jobs.priority = few.priority AND jobs.id >= :first) AS found
WHERE found.jobs > 0 GROUP BY 1

-- name: has_old
-- Whether a job of some queues, with a key up to :upto, has been ready since a date. It steps from one
-- priority to the next, and reads the first jobs of each. Of lines, it reads the first job of each.
WITH RECURSIVE heads (queue, priority) AS (
    SELECT q.name, (
        SELECT min(priority) FROM jobs WHERE status = {ready} AND held = 0 AND queue = q.name)
    FROM unnest(:queues::text[]) AS q (name)
    UNION ALL
    SELECT queue, (
        SELECT min(priority) FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue
            AND priority > heads.priority)
    FROM heads WHERE priority IS NOT NULL
), few AS (SELECT * FROM heads LIMIT 4000)
SELECT EXISTS (
    SELECT 1 FROM few CROSS JOIN LATERAL (
        SELECT id, ready_at FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = few.queue
            AND jobs.priority = few.priority
        ORDER BY id LIMIT 100) AS first
    WHERE id <= :upto AND ready_at <= :since
    UNION ALL
    SELECT 1 FROM unnest(:queues::text[]) AS q (name)
    CROSS JOIN LATERAL (
        SELECT head FROM lines WHERE lines.queue = q.name AND head > 0 AND head <= :upto
        ORDER BY head LIMIT 100) AS first
    JOIN jobs ON jobs.id = ANY (ARRAY[first.head])
    WHERE ready_at <= :since)
