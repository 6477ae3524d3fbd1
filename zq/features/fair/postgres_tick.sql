-- The statements of fair shares. None of them runs while no job has a fair key.

-- name: read_shares
-- :names maps queues to lists of keys. Each has its row, and what is set for it.
SELECT n.queue, n.fair_key, coalesce(s.weight, 1.0), coalesce(finish, 0.0), s.mean, coalesce(owed, 0.0),
    coalesce(unfinished, 0), coalesce(waiting, 0), coalesce(in_flight, 0), paid_until, opens_at,
    l.weight, l.max_in_flight, l.rate
FROM (
    SELECT q.key AS queue, k.value AS fair_key
    FROM json_each(:names::json) AS q CROSS JOIN LATERAL json_array_elements_text(q.value) AS k
    OFFSET 0) AS n
LEFT JOIN shares AS s ON s.queue = ANY (ARRAY[n.queue]) AND s.fair_key = n.fair_key
LEFT JOIN fair_limits AS l ON l.queue = ANY (ARRAY[n.queue]) AND l.fair_key = n.fair_key

-- name: read_shared_queues
SELECT queue, virtual, mean, unfinished FROM shared_queues WHERE queue = ANY (:queues::text[])

-- name: write_shared_queues
INSERT INTO shared_queues
SELECT * FROM unnest(:queues.0::text[], :queues.1::float8[], :queues.2::float8[], :queues.3::bigint[])
ON CONFLICT (queue) DO UPDATE SET virtual = excluded.virtual, mean = excluded.mean,
    unfinished = excluded.unfinished

-- name: open_keys
-- :names lists who has shut lines.
UPDATE lines SET shut_by = NULL, shut_cost = NULL WHERE shut_by = ANY (:names::text[])

-- name: open_keys_of_queue
-- The names of a queue's keys begin alike.
UPDATE lines SET shut_by = NULL, shut_cost = NULL
WHERE id = ANY (ARRAY(SELECT id FROM lines WHERE shut_by >= :first AND shut_by < :behind LIMIT :limit))

-- name: read_opening
SELECT queue, fair_key FROM shares WHERE opens_at IS NOT NULL AND opens_at <= :now
ORDER BY opens_at LIMIT :limit

-- name: pass_shares
-- :queues lists [queue, virtual time]. Forgets keys without jobs that the time of their queue has
-- passed, among the first of these.
DELETE FROM shares
WHERE ctid = ANY (ARRAY(
    SELECT place FROM (
        SELECT s.ctid AS place, s.paid_until
        FROM unnest(:queues.0::text[], :queues.1::float8[]) AS q (name, passed)
        CROSS JOIN LATERAL (
            SELECT ctid, paid_until FROM shares
            WHERE queue = q.name AND unfinished = 0 AND finish <= q.passed
            ORDER BY finish LIMIT :limit) AS s
        LIMIT :limit) AS gone
    WHERE coalesce(paid_until, 0) <= :now))

-- name: ended_queues
-- Queues in which nothing is unfinished, and of which some keys are still known.
SELECT queue FROM shared_queues WHERE unfinished = 0

-- name: end_shared_queues
-- Forgets queues without keys.
DELETE FROM shared_queues
WHERE queue = ANY (:queues::text[])
    AND NOT EXISTS (SELECT 1 FROM shares WHERE shares.queue = shared_queues.queue OFFSET 0)

-- name: put_fair_limit
INSERT INTO fair_limits (queue, fair_key, weight, max_in_flight, rate)
VALUES (:queue, :key, :weight, :max_in_flight, :rate)
ON CONFLICT (queue, fair_key) DO UPDATE SET weight = excluded.weight,
    max_in_flight = excluded.max_in_flight, rate = excluded.rate

-- name: count_shares
-- Counts the keys again from the rows of jobs, after unreadable rows were set aside.
UPDATE shares SET unfinished = c.unfinished, waiting = c.waiting, in_flight = c.in_flight
FROM (
    SELECT queue, key, count(status) AS unfinished,
        count(*) FILTER (WHERE status = {ready}) AS waiting,
        count(*) FILTER (WHERE status = {in_flight}) AS in_flight
    FROM (
        SELECT queue, fair_key AS key, NULL AS status FROM shares
        UNION ALL
        SELECT queue, options ->> 'fair_key' COLLATE "C", status FROM jobs
        WHERE status <= {in_flight}) AS each
    GROUP BY 1, 2) AS c
WHERE shares.queue = ANY (ARRAY[c.queue]) AND shares.fair_key = c.key

-- name: count_shared_queues
UPDATE shared_queues SET unfinished = (
    SELECT coalesce(sum(unfinished), 0) FROM shares WHERE shares.queue = shared_queues.queue)

-- name: return_shares
-- At a start: jobs that were given back wait again. What they were charged with is given back, as
-- far as their keys then stand no earlier than a new one would.
UPDATE shares SET waiting = waiting + c.n, in_flight = greatest(in_flight - c.n, 0),
    owed = owed - owed * c.n / greatest(in_flight, c.n),
    finish = greatest(
        finish - owed * c.n / greatest(in_flight, c.n) / coalesce((
            SELECT l.weight FROM fair_limits AS l
            WHERE l.queue = shares.queue AND l.fair_key = shares.fair_key), weight),
        least(finish, (SELECT q.virtual FROM shared_queues AS q WHERE q.queue = shares.queue)))
FROM (
    SELECT queue AS name, options ->> 'fair_key' AS key, count(*) AS n FROM jobs
    WHERE id = {keys} AND +status = {ready} AND options ->> 'fair_key' IS NOT NULL
    GROUP BY 1, 2) AS c
WHERE shares.queue = ANY (ARRAY[c.name]) AND shares.fair_key = c.key

-- name: place_returned
UPDATE lines SET place = (
    SELECT finish FROM shares
    WHERE shares.queue = lines.queue AND shares.fair_key = substr(lines.fair_key, 2))
WHERE id = ANY (ARRAY(SELECT line FROM jobs WHERE jobs.id = {keys} AND +line IS NOT NULL))
    AND fair_key <> ''
