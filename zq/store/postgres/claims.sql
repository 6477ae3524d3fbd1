-- The statements of claims: the next jobs in their order, past the gates, and their delivery. A row that
-- another server has locked is passed over.

-- name: claim_any
-- The index gives the keys in order, from a place on; only the wanted rows are read.
SELECT {job_row} FROM jobs
WHERE status = {ready} AND held = 0 AND (priority, id) >= (:priority::integer, :first::bigint)
ORDER BY priority, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: claim_behind
-- The next jobs behind a place in the order of claims.
SELECT {job_row} FROM jobs
WHERE status = {ready} AND held = 0 AND (priority, id) > (:priority::integer, :after::bigint)
ORDER BY priority, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: read_spots
-- The places of the jobs behind a place in the order of claims, and their queues.
SELECT priority, id, queue FROM jobs
WHERE status = {ready} AND held = 0 AND (priority, id) > (:priority::integer, :after::bigint)
ORDER BY priority, id LIMIT :limit

-- name: claim_queue
SELECT {job_row} FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
    AND (priority, id) >= (:priority::integer, :first::bigint)
ORDER BY priority, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: claim_arm
-- One queue's part of a claim; several are joined by UNION ALL and merged in index order.
(SELECT id AS key, priority AS urgency FROM jobs
WHERE status = {ready} AND held = 0 AND queue = :queue ORDER BY priority, id LIMIT :limit)

-- name: claim_bounded_arm
-- The part of a queue in a claim of which only :most jobs may be claimed.
(SELECT id AS key, priority AS urgency FROM jobs
WHERE status = {ready} AND held = 0 AND queue = :queue ORDER BY priority, id LIMIT :most)

-- name: claim_merged
-- ARMS stands for the arms.
SELECT {job_row} FROM (
    SELECT key, urgency FROM (
        ARMS) AS arms
    ORDER BY urgency, key LIMIT :limit) AS chosen
JOIN jobs ON jobs.id = ANY (ARRAY[key])
ORDER BY urgency, key FOR UPDATE OF jobs SKIP LOCKED

-- name: count_merged
-- How many jobs such a claim may choose from.
SELECT count(*) FROM (
    SELECT key FROM (
        ARMS) AS arms
    LIMIT :limit) AS chosen

-- name: claim_span
-- The first jobs of some queues among those with keys from :first on, and before :end. It steps from one
-- priority to the next of all queues, so that it reads no others, however many there are.
WITH RECURSIVE heads (queue, priority) AS (
    SELECT q.name, (
        SELECT min(priority) FROM jobs WHERE status = {ready} AND held = 0 AND queue = q.name)
    FROM unnest(:queues::text[]) AS q (name)
    UNION ALL
    SELECT heads.queue, (
        SELECT min(priority) FROM jobs WHERE status = {ready} AND held = 0
            AND jobs.queue = heads.queue AND priority > heads.priority)
    FROM heads WHERE priority IS NOT NULL
), chosen AS (
    SELECT first.id FROM (SELECT * FROM heads LIMIT 4000) AS heads CROSS JOIN LATERAL (
        SELECT id, priority FROM jobs WHERE status = {ready} AND held = 0
            AND jobs.queue = heads.queue AND jobs.priority = heads.priority
            AND id >= :first AND id < :end
        ORDER BY id LIMIT :limit) AS first
    ORDER BY first.priority, first.id LIMIT :limit
)
SELECT {job_row} FROM jobs WHERE id = ANY (ARRAY(SELECT id FROM chosen))
ORDER BY priority, id FOR UPDATE SKIP LOCKED

-- name: first_heads
-- Those of the queues whose first jobs come first: one seek a queue.
SELECT q.name FROM unnest(:queues::text[]) AS q (name)
CROSS JOIN LATERAL (
    SELECT priority, id FROM jobs WHERE status = {ready} AND held = 0 AND jobs.queue = q.name
    ORDER BY priority, id LIMIT 1) AS head
ORDER BY head.priority, head.id LIMIT :limit

-- name: heads_before
-- Those of the queues whose first jobs do not come behind a place.
SELECT q.name FROM unnest(:queues::text[]) AS q (name)
CROSS JOIN LATERAL (
    SELECT priority, id FROM jobs WHERE status = {ready} AND held = 0 AND jobs.queue = q.name
    ORDER BY priority, id LIMIT 1) AS head
WHERE (head.priority, head.id) <= (:priority::integer, :upto::bigint)

-- name: ready_queues
-- Queues with ready jobs whose names begin with :prefix: one seek a queue.
WITH RECURSIVE found (queue) AS (
    SELECT (SELECT queue FROM jobs
        WHERE status = {ready} AND held = 0 AND queue >= :prefix::text ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM jobs
        WHERE status = {ready} AND held = 0 AND queue > found.queue ORDER BY queue LIMIT 1)
    FROM found WHERE starts_with(found.queue, :prefix::text))
SELECT queue FROM found WHERE starts_with(queue, :prefix::text)

-- name: take
-- :holders maps a key to its new holder. A "queued" lock ends here.
UPDATE jobs SET status = {in_flight}, holder = h.takes, deliveries = deliveries + 1,
    dequeued_at = :now, owns_key = owns_key AND unique_while <> {while_queued}
FROM unnest(:holders.keys::bigint[], :holders.values::bigint[]) AS h (key, takes)
WHERE jobs.id = ANY (ARRAY[h.key]) AND +status = {ready}

-- name: take_on_terms
-- :leases lists [key, holder, claimant or null, lease_until or null].
UPDATE jobs SET status = {in_flight}, holder = l.takes, claimant = l.name,
    lease_until = l.until, deliveries = deliveries + 1, dequeued_at = :now,
    owns_key = owns_key AND unique_while <> {while_queued}
FROM unnest(:leases.0::bigint[], :leases.1::bigint[], :leases.2::text[], :leases.3::bigint[])
    AS l (key, takes, name, until)
WHERE jobs.id = ANY (ARRAY[l.key]) AND +status = {ready}

-- name: take_from_lines
UPDATE jobs SET held = 0, line = NULL, status = {in_flight}, holder = h.takes,
    deliveries = deliveries + 1, dequeued_at = :now,
    owns_key = owns_key AND unique_while <> {while_queued}
FROM unnest(:holders_from_lines.keys::bigint[], :holders_from_lines.values::bigint[])
    AS h (key, takes)
WHERE jobs.id = ANY (ARRAY[h.key]) AND +status = {ready}

-- name: take_on_terms_from_lines
UPDATE jobs SET held = 0, line = NULL, status = {in_flight}, holder = l.takes, claimant = l.name,
    lease_until = l.until, deliveries = deliveries + 1, dequeued_at = :now,
    owns_key = owns_key AND unique_while <> {while_queued}
FROM unnest(:leases_from_lines.0::bigint[], :leases_from_lines.1::bigint[],
    :leases_from_lines.2::text[], :leases_from_lines.3::bigint[]) AS l (key, takes, name, until)
WHERE jobs.id = ANY (ARRAY[l.key]) AND +status = {ready}
