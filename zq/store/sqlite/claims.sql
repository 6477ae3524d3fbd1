-- The statements of claims: the next jobs in their order, past the gates, and their delivery.

-- name: claim_any
-- The index gives the keys in order; only the wanted rows are read.
SELECT json_group_array({job_row}) FROM (
    SELECT id AS key FROM jobs WHERE status = {ready} AND held = 0 ORDER BY priority, id LIMIT :limit)
CROSS JOIN jobs ON jobs.id = key

-- name: claim_behind
-- The same for the jobs behind a place in that order. SQLite seeks to a place by an equality only:
-- for (priority, id) > (:priority, :after) it would visit all jobs of that priority.
SELECT json_group_array({job_row}) FROM (
    SELECT id AS key, priority AS urgency FROM jobs
    WHERE status = {ready} AND held = 0 AND priority = :priority AND id > :after
    UNION ALL
    SELECT id, priority FROM jobs WHERE status = {ready} AND held = 0 AND priority > :priority
    ORDER BY urgency, key LIMIT :limit)
CROSS JOIN jobs ON jobs.id = key

-- name: read_spots
-- The places of the jobs behind a place in that order, and their queues.
SELECT json_group_array(json_array(urgency, key, queue)) FROM (
    SELECT priority AS urgency, id AS key, queue FROM jobs
    WHERE status = {ready} AND held = 0 AND priority = :priority AND id > :after
    UNION ALL
    SELECT priority, id, queue FROM jobs
    WHERE status = {ready} AND held = 0 AND priority > :priority
    ORDER BY urgency, key LIMIT :limit)

-- name: claim_arm
-- One queue's part of a claim; several are joined by UNION ALL and merged in index order.
SELECT id AS key, priority AS urgency FROM jobs
WHERE status = {ready} AND held = 0 AND queue = :queue

-- name: claim_bounded_arm
-- The same for a queue of which only :most jobs may be claimed.
SELECT key, urgency FROM (
    SELECT id AS key, priority AS urgency FROM jobs
    WHERE status = {ready} AND held = 0 AND queue = :queue ORDER BY priority, id LIMIT :most)

-- name: claim_merged
-- ARMS stands for the arms.
SELECT json_group_array({job_row}) FROM (
    ARMS
    ORDER BY urgency, key LIMIT :limit)
CROSS JOIN jobs ON jobs.id = key

-- name: claim_span
-- The first jobs of some queues among those with keys from :first on, and before :end. It steps from one
-- priority to the next of all queues, so that it reads no others, however many there are.
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
SELECT json_group_array({job_row}) FROM (
    SELECT chosen.id AS key FROM (
        SELECT * FROM heads WHERE EXISTS (
            SELECT 1 FROM jobs
            WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue
                AND jobs.priority = heads.priority AND id >= :first AND id < :end)
        LIMIT 256) AS heads
    CROSS JOIN jobs AS chosen ON chosen.id IN (
        SELECT id FROM jobs
        WHERE status = {ready} AND held = 0 AND jobs.queue = heads.queue
            AND jobs.priority = heads.priority AND id >= :first AND id < :end
        ORDER BY id LIMIT :limit)
    ORDER BY chosen.priority, chosen.id LIMIT :limit)
CROSS JOIN jobs ON jobs.id = key

-- name: first_heads
-- Those of the queues whose first jobs come first: one seek a queue.
SELECT json_group_array(queue) FROM (
    SELECT q.value AS queue, head.priority AS urgency, head.id AS key
    FROM json_each(:queues) AS q
    CROSS JOIN jobs AS head ON head.id = (
        SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND jobs.queue = q.value
        ORDER BY priority, id LIMIT 1)
    ORDER BY urgency, key LIMIT :limit)

-- name: heads_before
-- Those of the queues whose first jobs do not come behind a place.
SELECT json_group_array(q.value)
FROM json_each(:queues) AS q
CROSS JOIN jobs AS head ON head.id = (
    SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND jobs.queue = q.value
    ORDER BY priority, id LIMIT 1)
WHERE (head.priority, head.id) <= (:priority, :upto)

-- name: ready_queues
-- Queues with ready jobs whose names begin with :prefix: one seek a queue. No character of a name has
-- a special meaning in a pattern.
WITH RECURSIVE found (queue) AS (
    SELECT (SELECT queue FROM jobs
        WHERE status = {ready} AND held = 0 AND queue >= :prefix ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM jobs
        WHERE status = {ready} AND held = 0 AND queue > found.queue ORDER BY queue LIMIT 1)
    FROM found WHERE found.queue GLOB :prefix || '*')
SELECT json_group_array(queue) FROM found WHERE queue GLOB :prefix || '*'

-- name: take
-- :holders maps a key to its new holder. A "queued" lock ends here.
UPDATE jobs SET status = {in_flight}, holder = h.value, deliveries = deliveries + 1,
    dequeued_at = :now, owns_key = owns_key AND unique_while <> {while_queued}
FROM json_each(:holders) AS h
WHERE jobs.id = CAST(h.key AS INTEGER) AND status = {ready}

-- name: take_on_terms
-- :leases lists [key, holder, claimant or null, lease_until or null].
UPDATE jobs SET status = {in_flight}, holder = l.value ->> 1, claimant = l.value ->> 2,
    lease_until = l.value ->> 3, deliveries = deliveries + 1, dequeued_at = :now,
    owns_key = owns_key AND unique_while <> {while_queued}
FROM json_each(:leases) AS l
WHERE jobs.id = l.value ->> 0 AND status = {ready}
