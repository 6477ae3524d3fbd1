-- The statements of lines. None of them runs while no room holds jobs.

-- name: name_lines
-- Makes the missing lines of waiting jobs.
INSERT INTO lines (queue, fair_key, draws, priority, aging_ms)
SELECT DISTINCT queue, {line_fair_key}, {line_draws}, {line_priority}, {line_aging_ms} FROM jobs
WHERE id = {keys} AND +status <= {ready} AND {has_line}
ON CONFLICT DO NOTHING

-- name: enter_lines
-- Puts waiting jobs into the lines that their rows name.
UPDATE jobs SET held = held | 2, line = (
    SELECT lines.id FROM lines WHERE lines.queue = jobs.queue AND lines.fair_key = {line_fair_key}
        AND lines.aging_ms = {line_aging_ms} AND lines.priority = {line_priority}
        AND hashtextextended(lines.draws, 0) = hashtextextended({line_draws}, 0)
        AND lines.draws = {line_draws})
WHERE id = {keys} AND +status <= {ready} AND {has_line}

-- name: leave_lines
-- Takes those jobs out of lines whose rows name none any more.
UPDATE jobs SET held = held & ~2, line = NULL
WHERE id = {keys} AND +line IS NOT NULL AND NOT {has_line}

-- name: name_new_lines
-- :names lists [queue, priority of the line, aging_ms, options] of jobs that are about to be stored.
INSERT INTO lines (queue, fair_key, draws, priority, aging_ms)
SELECT DISTINCT queue, {line_fair_key}, {line_draws}, priority, aging_ms
FROM (
    SELECT queue, priority, aging_ms, said::json AS options
    FROM unnest(:names.0::text[], :names.1::bigint[], :names.2::bigint[], :names.3::text[])
        AS n (queue, priority, aging_ms, said)) AS new
ON CONFLICT DO NOTHING

-- name: lines_of_names
-- The lines of the same names, in their order.
SELECT lines.id FROM (
    SELECT queue, priority, aging_ms, said::json AS options, nth
    FROM unnest(:names.0::text[], :names.1::bigint[], :names.2::bigint[], :names.3::text[])
        WITH ORDINALITY AS n (queue, priority, aging_ms, said, nth)) AS n
JOIN lines ON lines.queue = ANY (ARRAY[n.queue]) AND lines.fair_key = {line_fair_key}
    AND lines.aging_ms = n.aging_ms AND lines.priority = n.priority
    AND hashtextextended(lines.draws, 0) = hashtextextended({line_draws}, 0)
    AND lines.draws = {line_draws}
ORDER BY nth

-- name: lines_of_jobs
SELECT DISTINCT line FROM jobs WHERE id = {keys} AND +line IS NOT NULL

-- name: torn_lines
-- Lines whose heads are gone, since these jobs could not be read.
SELECT id FROM lines
WHERE head IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = head AND coalesce(line, 0) = lines.id OFFSET 0)

-- name: place_lines
-- :places maps queues to the keys of their lines, and these to places. Finds the heads of these lines in
-- the same step.
UPDATE lines SET place = p.place, head = p.first,
    shut_by = CASE WHEN lines.head <= p.first THEN shut_by END
FROM (
    SELECT l.id, n.place, (
        SELECT jobs.id FROM jobs WHERE line = l.id AND status = {ready} AND held = 2
        ORDER BY jobs.id LIMIT 1) AS first
    FROM {placed} AS n
    JOIN lines AS l ON l.queue = ANY (ARRAY[n.queue]) AND l.fair_key = n.fair_key) AS p
WHERE lines.id = ANY (ARRAY[p.id])
RETURNING lines.id, lines.head

-- name: move_lines
-- Moves the lines of keys whose jobs have neither come nor gone.
UPDATE lines SET place = n.place FROM {placed} AS n
WHERE lines.queue = ANY (ARRAY[n.queue]) AND lines.fair_key = n.fair_key

-- name: refresh_lines
-- Finds the heads again. A line is open again once it has an earlier head than before. A new line of a
-- key that nothing else has changed has the place of those that its jobs come from.
UPDATE lines SET head = new.head,
    place = CASE WHEN lines.fair_key = '' THEN new.head ELSE coalesce(lines.place, (
        SELECT key.place FROM lines AS key WHERE key.queue = lines.queue
            AND key.fair_key = lines.fair_key AND key.place IS NOT NULL LIMIT 1)) END,
    shut_by = CASE WHEN new.head >= lines.head THEN shut_by END
FROM (
    SELECT v.id, (
        SELECT jobs.id FROM jobs WHERE line = v.id AND status = {ready} AND held = 2
        ORDER BY jobs.id LIMIT 1) AS head
    FROM unnest(:lines::bigint[]) AS v (id)) AS new
WHERE lines.id = ANY (ARRAY[new.id])
    AND (lines.head IS DISTINCT FROM new.head OR (lines.place IS NULL AND lines.fair_key <> ''))

-- name: forget_lines
-- Deletes those of the lines in which no job is left.
DELETE FROM lines
WHERE id = ANY (:lines::bigint[]) AND head IS NULL
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE line = lines.id OFFSET 0)

-- name: open_lines
-- The open lines that do not age.
SELECT {line_row} FROM (
    SELECT *, priority AS urgency FROM lines
    WHERE +head IS NOT NULL AND shut_by IS NULL AND aging_ms = 0
    ORDER BY priority, head LIMIT :limit) AS lines
ORDER BY priority, head

-- name: aging_arm
-- The part of the open lines that age alike.
(SELECT *, {line_urgency} AS urgency FROM lines
    WHERE +head IS NOT NULL AND shut_by IS NULL AND aging_ms = :aging_ms
    ORDER BY priority, head LIMIT :limit)

-- name: line_arm
-- One queue's part of the open lines.
(SELECT *, {line_urgency} AS urgency FROM lines
    WHERE head IS NOT NULL AND shut_by IS NULL AND queue = :queue
    ORDER BY priority, head LIMIT :limit)

-- name: lines_merged
-- ARMS stands for the arms.
SELECT {line_row} FROM (
    SELECT * FROM (
        ARMS) AS arms
    ORDER BY urgency, head LIMIT :limit) AS lines
ORDER BY urgency, head

-- name: line_queues
-- Queues with open lines whose names begin with :prefix: one seek a queue.
WITH RECURSIVE found (queue) AS (
    SELECT (SELECT queue FROM lines
        WHERE head IS NOT NULL AND shut_by IS NULL AND queue >= :prefix::text
        ORDER BY queue, priority, head LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM lines
        WHERE head IS NOT NULL AND shut_by IS NULL AND queue > found.queue
        ORDER BY queue, priority, head LIMIT 1)
    FROM found WHERE starts_with(found.queue, :prefix::text))
SELECT queue FROM found WHERE starts_with(queue, :prefix::text)

-- name: first_line_queues
-- Those of the queues whose first open lines come first: one seek a queue.
SELECT name FROM (
    SELECT q.name, {line_urgency} AS urgency, head
    FROM unnest(:queues::text[]) AS q (name)
    CROSS JOIN LATERAL (
        SELECT * FROM lines WHERE head IS NOT NULL AND shut_by IS NULL AND lines.queue = q.name
        ORDER BY priority, head LIMIT 1) AS first) AS found
ORDER BY urgency, head LIMIT :limit

-- name: shared_lines
-- The open lines of a queue and a priority that share it, by their places.
SELECT {line_row} FROM (
    SELECT *, priority AS urgency FROM lines
    WHERE head IS NOT NULL AND shut_by IS NULL AND fair_key <> ''
        AND queue = :queue AND priority = :priority
    ORDER BY place, head LIMIT :limit) AS lines
ORDER BY place, head

-- name: jobs_in_line
-- The next jobs of a line behind one of them.
SELECT id FROM jobs WHERE line = :line AND status = {ready} AND held = 2 AND id > :after
ORDER BY id LIMIT :limit

-- name: jobs_in_lines
-- :lines lists [line, job]: the next jobs of each line behind that job.
SELECT l.id, ARRAY(
    SELECT jobs.id FROM jobs
    WHERE line = l.id AND status = {ready} AND held = 2 AND jobs.id > l.job
    ORDER BY jobs.id LIMIT :most)
FROM unnest(:lines.0::bigint[], :lines.1::bigint[]) AS l (id, job)

-- name: read_lined
-- Jobs that were found in lines. The claim knows in which.
SELECT {job_row} FROM jobs WHERE id = {keys} FOR UPDATE

-- name: shut_lines
-- :lines lists [line, who cannot pay, cost].
UPDATE lines SET shut_by = s.by, shut_cost = s.cost
FROM unnest(:lines.0::bigint[], :lines.1::text[], :lines.2::bigint[]) AS s (id, by, cost)
WHERE lines.id = ANY (ARRAY[s.id])

-- name: first_shut
-- For each of :names the least cost of lines that it shuts, and the first of their queues.
SELECT n.name, first.shut_cost, first.queue FROM unnest(:names::text[]) AS n (name)
CROSS JOIN LATERAL (
    SELECT shut_cost, queue FROM lines WHERE shut_by = n.name
    ORDER BY shut_cost, queue LIMIT 1) AS first

-- name: next_shut
-- What comes after a cost and a queue.
SELECT shut_cost, queue FROM lines
WHERE shut_by = :by AND (shut_cost, queue) > (:cost::bigint, :queue::text)
ORDER BY shut_cost, queue LIMIT 1

-- name: open_shut
-- Opens the next lines of a queue that wait for the same cost.
UPDATE lines SET shut_by = NULL
WHERE id = ANY (ARRAY(
    SELECT id FROM lines WHERE shut_by = :by AND shut_cost = :cost AND queue = :queue
    ORDER BY priority, place LIMIT :most))

-- name: aged_lines
-- How lines age, and their queues.
SELECT DISTINCT aging_ms, queue FROM lines WHERE aging_ms > 0

-- name: misplaced
-- Waiting jobs of a queue that ages by :aging_ms, or not at all, in the lines of :others that it aged by
-- before, in lines that do not age, and in no line.
SELECT id FROM (
    SELECT jobs.id FROM (
        (SELECT l.id FROM unnest(:others::bigint[]) AS o (aging_ms) CROSS JOIN LATERAL (
            SELECT id FROM lines
            WHERE aging_ms > 0 AND aging_ms = o.aging_ms AND queue = :queue OFFSET 0) AS l)
        UNION ALL (
            SELECT id FROM lines
            WHERE queue = :queue AND fair_key = '' AND aging_ms = 0 AND :aging_ms::bigint > 0)
        UNION ALL (
            SELECT id FROM lines
            WHERE head IS NOT NULL AND shut_by IS NULL AND queue = :queue
                AND priority < {ages} AND fair_key <> '' AND :aging_ms::bigint > 0
            ORDER BY queue, priority, place, head)) AS l
    CROSS JOIN LATERAL (SELECT jobs.id FROM jobs WHERE line = l.id OFFSET 0) AS jobs
    UNION ALL
    SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
        AND :aging_ms::bigint > 0) AS found
LIMIT :limit
