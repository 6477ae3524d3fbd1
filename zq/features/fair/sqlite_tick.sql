-- The statements of fair shares. None of them runs while no job has a fair key.

-- name: has_shares
SELECT EXISTS (SELECT 1 FROM shares)

-- name: read_shares
-- :names lists [queue, key]. Each has its row, and what is set for it.
SELECT json_group_array(json_array(n.queue, n.key, ifnull(s.weight, 1.0), ifnull(finish, 0.0), s.mean,
    ifnull(owed, 0.0), ifnull(unfinished, 0), ifnull(waiting, 0), ifnull(in_flight, 0),
    paid_until, opens_at, l.weight, l.max_in_flight, l.rate))
FROM (SELECT value ->> 0 AS queue, value ->> 1 AS key FROM json_each(:names)) AS n
LEFT JOIN shares AS s ON s.queue = n.queue AND s.fair_key = n.key
LEFT JOIN fair_limits AS l ON l.queue = n.queue AND l.fair_key = n.key

-- name: read_shared_queues
SELECT json_group_array(json_array(queue, virtual, mean, unfinished)) FROM shared_queues
WHERE queue IN (SELECT value FROM json_each(:queues))

-- name: write_shares
INSERT OR REPLACE INTO shares
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8, value ->> 9, value ->> 10
FROM json_each(:shares)

-- name: write_shared_queues
INSERT OR REPLACE INTO shared_queues
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:queues)

-- name: place_lines
-- :places lists [queue, fair_key of the line, place].
UPDATE lines SET place = p.value ->> 2
FROM json_each(:places) AS p
WHERE lines.queue = p.value ->> 0 AND lines.fair_key = p.value ->> 1

-- name: open_keys
-- :names lists who has shut lines.
UPDATE lines SET shut_by = NULL, shut_cost = NULL
WHERE shut_by IN (SELECT value FROM json_each(:names))

-- name: shut_by_rate
-- :openings lists [queue, key, when].
UPDATE shares SET opens_at = o.value ->> 2
FROM json_each(:openings) AS o
WHERE shares.queue = o.value ->> 0 AND fair_key = o.value ->> 1

-- name: read_opening
SELECT json_group_array(json_array(queue, fair_key)) FROM (
    SELECT queue, fair_key FROM shares WHERE opens_at IS NOT NULL AND opens_at <= :now
    ORDER BY opens_at LIMIT :limit)

-- name: end_shut_by_rate
UPDATE shares SET opens_at = NULL
FROM json_each(:names) AS n
WHERE shares.queue = n.value ->> 0 AND fair_key = n.value ->> 1

-- name: open_every_key
-- At a start: jobs in flight were given back. The names of keys are lists, in JSON.
UPDATE lines SET shut_by = NULL, shut_cost = NULL WHERE shut_by >= '[' AND shut_by < '\'

-- name: pass_shares
-- Forgets keys without jobs that the virtual time of their queue has passed.
DELETE FROM shares WHERE queue = :queue AND unfinished = 0 AND finish <= :virtual
    AND ifnull(paid_until, 0) <= :now

-- name: end_sharing
-- Forgets the keys of queues in which nothing is unfinished.
DELETE FROM shares
WHERE queue IN (SELECT value FROM json_each(:queues)) AND ifnull(paid_until, 0) <= :now

-- name: end_shared_queues
DELETE FROM shared_queues WHERE queue IN (SELECT value FROM json_each(:queues))

-- name: put_fair_limit
INSERT OR REPLACE INTO fair_limits (queue, fair_key, weight, max_in_flight, rate)
VALUES (:queue, :key, :weight, :max_in_flight, :rate)

-- name: drop_fair_limit
DELETE FROM fair_limits WHERE queue = :queue AND fair_key = :key

-- name: clear_shares
DELETE FROM shares

-- name: clear_shared_queues
DELETE FROM shared_queues

-- name: clear_fair_limits
DELETE FROM fair_limits

-- name: count_shares
-- Counts the keys again from the rows of jobs, after unreadable rows were set aside.
UPDATE shares SET unfinished = c.unfinished, waiting = c.waiting, in_flight = c.in_flight
FROM (
    SELECT s.queue AS queue, s.fair_key AS key, count(j.id) AS unfinished,
        total(j.status = {ready}) AS waiting, total(j.status = {in_flight}) AS in_flight
    FROM shares AS s LEFT JOIN jobs AS j
        ON j.queue = s.queue AND j.status <= {in_flight} AND j.options ->> '$.fair_key' = s.fair_key
    GROUP BY 1, 2) AS c
WHERE shares.queue = c.queue AND shares.fair_key = c.key

-- name: count_shared_queues
UPDATE shared_queues SET unfinished = (
    SELECT total(unfinished) FROM shares WHERE shares.queue = shared_queues.queue)

-- name: return_shares
-- At a start: jobs that were given back wait again. What they were charged with is given back.
UPDATE shares SET waiting = waiting + c.n, in_flight = max(in_flight - c.n, 0),
    owed = owed - owed * c.n / max(in_flight, c.n),
    finish = finish - owed * c.n / max(in_flight, c.n) / weight
FROM (
    SELECT queue AS name, options ->> '$.fair_key' AS key, count(*) AS n FROM jobs
    WHERE id IN {keys} AND status = {ready} AND options ->> '$.fair_key' IS NOT NULL
    GROUP BY 1, 2) AS c
WHERE shares.queue = c.name AND shares.fair_key = c.key

-- name: place_returned
UPDATE lines SET place = (
    SELECT finish FROM shares WHERE shares.queue = lines.queue AND '=' || fair_key = lines.fair_key)
WHERE id IN (SELECT line FROM jobs WHERE id IN {keys} AND line IS NOT NULL) AND fair_key <> ''
