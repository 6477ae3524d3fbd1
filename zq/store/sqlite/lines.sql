-- The statements of lines. None of them runs while no room holds jobs.

-- name: name_lines
-- Makes the missing lines of waiting jobs.
INSERT OR IGNORE INTO lines (queue, fair_key, draws, priority, aging_ms)
SELECT DISTINCT queue, {line_fair_key}, {line_draws}, {line_priority}, {line_aging_ms} FROM jobs
WHERE id IN {keys} AND status <= {ready} AND {has_line}

-- name: enter_lines
-- Puts waiting jobs into the lines that their rows name.
UPDATE jobs SET held = held | 2, line = (
    SELECT lines.id FROM lines WHERE lines.queue = jobs.queue AND lines.fair_key = {line_fair_key}
        AND lines.aging_ms = {line_aging_ms} AND lines.priority = {line_priority}
        AND lines.draws = {line_draws})
WHERE id IN {keys} AND status <= {ready} AND {has_line}

-- name: leave_lines
-- Takes those jobs out of lines whose rows name none any more.
UPDATE jobs SET held = held & ~2, line = NULL
WHERE id IN {keys} AND line IS NOT NULL AND NOT {has_line}

-- name: name_new_lines
-- :names lists [queue, priority of the line, aging_ms, options] of jobs that are about to be stored.
INSERT OR IGNORE INTO lines (queue, fair_key, draws, priority, aging_ms)
SELECT queue, {line_fair_key}, {line_draws}, priority, aging_ms
FROM (SELECT value ->> 0 AS queue, value ->> 1 AS priority, value ->> 2 AS aging_ms,
        value ->> 3 AS options
    FROM json_each(:names))

-- name: lines_of_names
-- The lines of the same names, in their order.
SELECT json_group_array(id) FROM (
    SELECT lines.id FROM (
        SELECT key AS nth, value ->> 0 AS queue, value ->> 1 AS priority, value ->> 2 AS aging_ms,
            value ->> 3 AS options
        FROM json_each(:names)) AS n
    CROSS JOIN lines ON lines.queue = n.queue AND lines.fair_key = {line_fair_key}
        AND lines.aging_ms = n.aging_ms AND lines.priority = n.priority AND lines.draws = {line_draws}
    ORDER BY nth)

-- name: lines_of_jobs
SELECT json_group_array(DISTINCT line) FROM jobs WHERE id IN {keys} AND line IS NOT NULL

-- name: torn_lines
-- Lines whose heads are gone, since these jobs could not be read.
SELECT json_group_array(id) FROM lines
WHERE head IS NOT NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = head AND line = lines.id)

-- name: place_lines
-- :places maps queues to the keys of their lines, and these to places. Finds the heads of these lines in
-- the same step.
UPDATE lines SET place = p.place, head = (
        SELECT jobs.id FROM jobs WHERE line = lines.id AND status = {ready} AND held = 2
        ORDER BY jobs.id LIMIT 1),
    shut_by = CASE WHEN shut_by IS NOT NULL THEN iif(head <= (
        SELECT jobs.id FROM jobs WHERE line = lines.id AND status = {ready} AND held = 2
        ORDER BY jobs.id LIMIT 1), shut_by, NULL) END
FROM (
    SELECT q.key AS queue, p.key AS fair_key, p.value AS place
    FROM json_each(:places) AS q CROSS JOIN json_each(q.value) AS p LIMIT -1) AS p
WHERE lines.queue = p.queue AND lines.fair_key = p.fair_key
RETURNING id, head

-- name: move_lines
-- Moves the lines of keys whose jobs have neither come nor gone.
UPDATE lines SET place = p.place
FROM (
    SELECT q.key AS queue, p.key AS fair_key, p.value AS place
    FROM json_each(:places) AS q CROSS JOIN json_each(q.value) AS p LIMIT -1) AS p
WHERE lines.queue = p.queue AND lines.fair_key = p.fair_key

-- name: refresh_lines
-- Finds the heads again. A line is open again once it has an earlier head than before. A new line of a
-- key that nothing else has changed has the place of those that its jobs come from.
UPDATE lines SET head = new.head, place = iif(lines.fair_key = '', new.head, ifnull(lines.place, (
        SELECT place FROM lines AS key WHERE key.queue = lines.queue
            AND key.fair_key = lines.fair_key AND place IS NOT NULL LIMIT 1))),
    shut_by = iif(new.head >= lines.head, shut_by, NULL)
FROM (
    SELECT value AS id, (
        SELECT jobs.id FROM jobs WHERE line = value AND status = {ready} AND held = 2
        ORDER BY jobs.id LIMIT 1) AS head
    FROM json_each(:lines)) AS new
WHERE lines.id = new.id
    AND (lines.head IS NOT new.head OR (lines.place IS NULL AND lines.fair_key <> ''))

-- name: forget_lines
-- Deletes those of the lines in which no job is left.
DELETE FROM lines
WHERE id IN (SELECT value FROM json_each(:lines)) AND head IS NULL
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE line = lines.id)

-- name: open_lines
-- The open lines that do not age.
SELECT json_group_array({open_line_row}) FROM (
    SELECT *, priority AS urgency FROM lines
    WHERE head IS NOT NULL AND shut_by IS NULL AND aging_ms = 0
    ORDER BY priority, head LIMIT :limit) AS lines

-- name: aging_arm
-- The part of the open lines that age alike.
SELECT *, {line_urgency} AS urgency FROM (
    SELECT * FROM lines WHERE head IS NOT NULL AND shut_by IS NULL AND aging_ms = :aging_ms
    ORDER BY priority, head LIMIT :limit)

-- name: line_arm
-- One queue's part of the open lines.
SELECT *, {line_urgency} AS urgency FROM (
    SELECT * FROM lines WHERE head IS NOT NULL AND shut_by IS NULL AND queue = :queue
    ORDER BY priority, head LIMIT :limit)

-- name: lines_merged
-- ARMS stands for the arms.
SELECT json_group_array({open_line_row}) FROM (
    ARMS
    ORDER BY urgency, head LIMIT :limit) AS lines

-- name: line_queues
-- Queues with open lines whose names begin with :prefix: one seek a queue.
WITH RECURSIVE found (queue) AS (
    SELECT (SELECT queue FROM lines
        WHERE head IS NOT NULL AND shut_by IS NULL AND queue >= :prefix ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM lines
        WHERE head IS NOT NULL AND shut_by IS NULL AND queue > found.queue ORDER BY queue LIMIT 1)
    FROM found WHERE found.queue GLOB :prefix || '*')
SELECT json_group_array(queue) FROM found WHERE queue GLOB :prefix || '*'

-- name: first_line_queues
-- Those of the queues whose first open lines come first: one seek a queue.
SELECT json_group_array(name) FROM (
    SELECT q.value AS name FROM json_each(:queues) AS q
    CROSS JOIN lines ON lines.id = (
        SELECT id FROM lines WHERE head IS NOT NULL AND shut_by IS NULL AND lines.queue = q.value
        ORDER BY priority, head LIMIT 1)
    ORDER BY {line_urgency}, head LIMIT :limit)

-- name: shared_lines
-- The open lines of a queue and a priority that share it, by their places.
SELECT json_group_array({line_row}) FROM (
    SELECT *, priority AS urgency FROM lines
    WHERE head IS NOT NULL AND shut_by IS NULL AND fair_key <> ''
        AND queue = :queue AND priority = :priority
    ORDER BY place, head LIMIT :limit) AS lines

-- name: jobs_in_line
-- The next jobs of a line behind one of them.
SELECT json_group_array(id) FROM (
    SELECT id FROM jobs WHERE line = :line AND status = {ready} AND held = 2 AND id > :after
    ORDER BY id LIMIT :limit)

-- name: jobs_in_lines
-- :lines lists [line, job]: the next jobs of each line behind that job.
SELECT json_group_array(json_array(l.value ->> 0, json((
    SELECT json_group_array(id) FROM (
        SELECT id FROM jobs
        WHERE line = l.value ->> 0 AND status = {ready} AND held = 2 AND id > l.value ->> 1
        ORDER BY id LIMIT :most)))))
FROM json_each(:lines) AS l

-- name: read_lined
-- Jobs that were found in lines. The claim knows in which.
SELECT json_group_array({lined_row}) FROM jobs WHERE id IN {keys}

-- name: shut_lines
-- :lines lists [line, who cannot pay, cost].
UPDATE lines SET shut_by = s.value ->> 1, shut_cost = s.value ->> 2
FROM json_each(:lines) AS s
WHERE lines.id = s.value ->> 0

-- name: first_shut
-- For each of :names the least cost of lines that it shuts, and the first of their queues.
SELECT json_group_array(json_array(name, shut_cost, queue)) FROM (
    SELECT n.value AS name, shut_cost, queue FROM json_each(:names) AS n
    CROSS JOIN lines ON lines.id = (
        SELECT id FROM lines WHERE shut_by = n.value ORDER BY shut_cost, queue LIMIT 1))

-- name: next_shut
-- What comes after a cost and a queue.
SELECT json_group_array(json_array(shut_cost, queue)) FROM (
    SELECT * FROM (
        SELECT shut_cost, queue FROM lines
        WHERE shut_by = :by AND shut_cost = :cost AND queue > :queue ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT * FROM (
        SELECT shut_cost, queue FROM lines
        WHERE shut_by = :by AND shut_cost > :cost ORDER BY shut_cost, queue LIMIT 1)
    LIMIT 1)

-- name: open_shut
-- Opens the next lines of a queue that wait for the same cost.
UPDATE lines SET shut_by = NULL
WHERE id IN (
    SELECT id FROM lines WHERE shut_by = :by AND shut_cost = :cost AND queue = :queue
    ORDER BY priority, place LIMIT :most)

-- name: aged_lines
-- How lines age, and their queues.
SELECT json_group_array(json_array(aging_ms, queue)) FROM (
    SELECT DISTINCT aging_ms, queue FROM lines WHERE aging_ms > 0)

-- name: misplaced
-- Waiting jobs of a queue that ages by :aging_ms, or not at all, in the lines of :others that it aged by
-- before, in lines that do not age, and in no line.
SELECT json_group_array(id) FROM (
    SELECT jobs.id AS id FROM json_each(:others) AS o
    CROSS JOIN lines ON lines.aging_ms > 0 AND lines.aging_ms = o.value AND lines.queue = :queue
    CROSS JOIN jobs ON jobs.line = lines.id
    UNION ALL
    SELECT jobs.id FROM lines CROSS JOIN jobs ON jobs.line = lines.id
    WHERE lines.queue = :queue AND fair_key = '' AND aging_ms = 0 AND :aging_ms > 0
    UNION ALL
    SELECT jobs.id FROM lines CROSS JOIN jobs ON jobs.line = lines.id
    WHERE head IS NOT NULL AND shut_by IS NULL AND lines.queue = :queue
        AND lines.priority < {ages} AND fair_key <> '' AND :aging_ms > 0
    UNION ALL
    SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue AND :aging_ms > 0
    LIMIT :limit)
