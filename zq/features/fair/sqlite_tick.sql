-- The statements of fair shares. None of them runs while no job has a fair key.

-- name: read_shares
-- :names maps queues to lists of keys. Each has its row, and what is set for it.
SELECT json_group_array(json_array(q.key, k.value, ifnull(s.weight, 1.0), ifnull(finish, 0.0), s.mean,
    ifnull(owed, 0.0), ifnull(unfinished, 0), ifnull(waiting, 0), ifnull(in_flight, 0),
    paid_until, opens_at, l.weight, l.max_in_flight, l.rate))
FROM json_each(:names) AS q CROSS JOIN json_each(q.value) AS k
LEFT JOIN shares AS s ON s.queue = q.key AND s.fair_key = k.value
LEFT JOIN fair_limits AS l ON l.queue = q.key AND l.fair_key = k.value

-- name: read_shared_queues
SELECT json_group_array(json_array(queue, virtual, mean, unfinished)) FROM shared_queues
WHERE queue IN (SELECT value FROM json_each(:queues))

-- name: write_shared_queues
INSERT OR REPLACE INTO shared_queues
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:queues)

-- name: open_keys
-- :names lists who has shut lines.
UPDATE lines SET shut_by = NULL, shut_cost = NULL
WHERE shut_by IN (SELECT value FROM json_each(:names))

-- name: open_keys_of_queue
-- The names of a queue's keys begin alike.
UPDATE lines SET shut_by = NULL, shut_cost = NULL
WHERE id IN (SELECT id FROM lines WHERE shut_by >= :first AND shut_by < :behind LIMIT :limit)

-- name: read_opening
SELECT json_group_array(json_array(queue, fair_key)) FROM (
    SELECT queue, fair_key FROM shares WHERE opens_at IS NOT NULL AND opens_at <= :now
    ORDER BY opens_at LIMIT :limit)

-- name: pass_shares
-- :queues lists [queue, virtual time]. Forgets keys without jobs that the time of their queue has
-- passed, among the first of these.
DELETE FROM shares
WHERE (queue, fair_key) IN (
    SELECT queue, fair_key FROM (
        SELECT s.queue AS queue, s.fair_key AS fair_key, s.paid_until AS paid_until
        FROM json_each(:queues) AS q
        CROSS JOIN shares AS s ON s.queue = q.value ->> 0 AND s.finish <= q.value ->> 1
        WHERE s.unfinished = 0
        LIMIT :limit)
    WHERE ifnull(paid_until, 0) <= :now)

-- name: ended_queues
-- Queues in which nothing is unfinished, and of which some keys are still known.
SELECT json_group_array(queue) FROM shared_queues WHERE unfinished = 0

-- name: end_shared_queues
-- Forgets queues without keys.
DELETE FROM shared_queues
WHERE queue IN (SELECT value FROM json_each(:queues))
    AND NOT EXISTS (SELECT 1 FROM shares WHERE shares.queue = shared_queues.queue)

-- name: put_fair_limit
INSERT OR REPLACE INTO fair_limits (queue, fair_key, weight, max_in_flight, rate)
VALUES (:queue, :key, :weight, :max_in_flight, :rate)

-- name: make_lost_shares
INSERT OR IGNORE INTO shares
    (queue, fair_key, weight, finish, owed, unfinished, waiting, in_flight)
SELECT DISTINCT jobs.queue, options ->> '$.fair_key', 1.0,
    ifnull((SELECT virtual FROM shared_queues AS q WHERE q.queue = jobs.queue), 0.0), 0.0, 0, 0, 0
FROM jobs WHERE status <= {in_flight} AND options ->> '$.fair_key' IS NOT NULL

-- name: make_lost_shared_queues
INSERT OR IGNORE INTO shared_queues (queue, virtual, mean, unfinished)
SELECT queue, min(finish), 1.0, 0 FROM shares GROUP BY queue

-- name: count_shares
-- Counts the keys again from the rows of jobs, after unreadable rows were set aside.
UPDATE shares SET unfinished = c.unfinished, waiting = c.waiting, in_flight = c.in_flight
FROM (
    SELECT queue, key, sum(unfinished) AS unfinished, sum(waiting) AS waiting,
        sum(in_flight) AS in_flight
    FROM (
        SELECT queue, fair_key AS key, 0 AS unfinished, 0 AS waiting, 0 AS in_flight FROM shares
        UNION ALL
        SELECT queue, options ->> '$.fair_key', 1, status = {ready}, status = {in_flight}
        FROM jobs WHERE status <= {in_flight} AND options ->> '$.fair_key' IS NOT NULL)
    GROUP BY 1, 2) AS c
WHERE shares.queue = c.queue AND shares.fair_key = c.key

-- name: count_shared_queues
UPDATE shared_queues SET unfinished = (
    SELECT total(unfinished) FROM shares WHERE shares.queue = shared_queues.queue)

-- name: return_shares
-- At a start: jobs that were given back wait again. What they were charged with is given back, as
-- far as their keys then stand no earlier than a new one would.
UPDATE shares SET waiting = waiting + c.n, in_flight = max(in_flight - c.n, 0),
    owed = owed - owed * c.n / max(in_flight, c.n),
    finish = max(
        finish - owed * c.n / max(in_flight, c.n) / coalesce((
            SELECT l.weight FROM fair_limits AS l
            WHERE l.queue = shares.queue AND l.fair_key = shares.fair_key), weight),
        min(finish, (SELECT q.virtual FROM shared_queues AS q WHERE q.queue = shares.queue)))
FROM (
    SELECT queue AS name, options ->> '$.fair_key' AS key, count(*) AS n FROM jobs
    WHERE id IN {keys} AND status = {ready} AND options ->> '$.fair_key' IS NOT NULL
    GROUP BY 1, 2) AS c
WHERE shares.queue = c.name AND shares.fair_key = c.key

-- name: place_returned
UPDATE lines SET place = (
    SELECT finish FROM shares WHERE shares.queue = lines.queue AND '=' || fair_key = lines.fair_key)
WHERE id IN (SELECT line FROM jobs WHERE id IN {keys} AND line IS NOT NULL) AND fair_key <> ''
