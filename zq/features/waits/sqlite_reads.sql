-- The facts that may keep a job waiting, each by a few steps or up to :most; what comes next; the leases that
-- end; groups.

-- name: in_flight_of
SELECT n FROM queue_counts WHERE queue = :queue AND status = {in_flight}

-- name: head_of_group
-- The index has the open jobs of a group before the others.
SELECT id FROM jobs WHERE queue = :queue AND group_id = :group AND held & 1 = 0
    AND status <= {in_flight} LIMIT 1

-- name: canceller_of
-- Who has cancelled a job, and why, as far as that is known.
SELECT outline ->> '$.author.actor', outline ->> '$.author.reason'
FROM sweeps WHERE id = (SELECT swept FROM jobs WHERE id = :key)

-- name: turn_of
-- The fair key of a job, and its place among those that wait of up to :most keys of the queue.
WITH waiting AS (
    SELECT o.finish AS finish, ifnull(ol.weight, o.weight) AS weight
    FROM (SELECT * FROM shares WHERE queue = :queue LIMIT :most) AS o
    LEFT JOIN fair_limits AS ol ON ol.queue = o.queue AND ol.fair_key = o.fair_key
    WHERE o.waiting > 0)
SELECT s.in_flight, s.opens_at, l.max_in_flight, ifnull(l.weight, s.weight),
    before, keys, max(weights, ifnull(l.weight, s.weight))
FROM shares AS s
LEFT JOIN fair_limits AS l ON l.queue = s.queue AND l.fair_key = s.fair_key
CROSS JOIN (
    SELECT count(*) FILTER (WHERE finish < (
            SELECT finish FROM shares WHERE queue = :queue AND fair_key = :key)) AS before,
        count(*) AS keys, total(weight) AS weights
    FROM waiting)
WHERE s.queue = :queue AND s.fair_key = :key AND s.waiting > 0

-- name: may_go
SELECT EXISTS (SELECT 1 FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue)
    OR EXISTS (SELECT 1 FROM lines WHERE head IS NOT NULL AND shut_by IS NULL AND queue = :queue)

-- name: behind
-- The ready jobs of a queue behind others of their groups, among the first :most of all its groups' jobs.
SELECT ifnull(sum(is_behind), 0) FROM (
    SELECT held & 1 AND status = {ready} AS is_behind FROM jobs
    WHERE queue = :queue AND group_id > '' AND status <= {in_flight} LIMIT :most)

-- name: more_urgent_lines
-- Jobs in the lines of its queue that come before that of a job.
SELECT count(*) FROM (
    SELECT 1 FROM lines CROSS JOIN jobs
        ON jobs.line = lines.id AND jobs.status = {ready} AND jobs.held = 2
    WHERE lines.head IS NOT NULL AND lines.shut_by IS NULL AND lines.queue = :queue
        AND lines.priority < (
            SELECT priority FROM lines WHERE id = (SELECT line FROM jobs WHERE id = :key))
    LIMIT :most)

-- name: scheduled_beside
-- The scheduled jobs of the same date behind a job. CONDITIONS stands for the reach of the caller.
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM jobs WHERE status = {scheduled} AND due_at IS NULL
        AND ready_at = :ready_at AND id > :key AND CONDITIONS
    ORDER BY id LIMIT :limit)

-- name: scheduled_beyond
-- The scheduled jobs of later dates. CONDITIONS stands for the reach of the caller.
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM jobs WHERE status = {scheduled} AND due_at IS NULL
        AND ready_at > :ready_at AND CONDITIONS
    ORDER BY ready_at, id LIMIT :limit)

-- name: waiting_beside
-- Jobs that wait for a duration, of the same end of it.
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM jobs WHERE status = {scheduled} AND due_at = :due_at AND id > :key AND CONDITIONS
    ORDER BY id LIMIT :limit)

-- name: waiting_beyond
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM jobs WHERE status = {scheduled} AND due_at > :due_at AND CONDITIONS
    ORDER BY due_at, id LIMIT :limit)

-- name: running_long
-- The jobs in flight for the longest time, before :before, among the first :most by their ids, without those
-- on their way to another server, whose holders are negative. CONDITIONS stands for the reach of the caller.
SELECT json_group_array({job_row}) FROM (
    SELECT * FROM (SELECT * FROM jobs WHERE status = {in_flight} AND status <> {ready} AND CONDITIONS
        ORDER BY id LIMIT :most)
    WHERE dequeued_at < :before AND holder >= 0 ORDER BY dequeued_at LIMIT :limit)

-- name: groups
-- The first groups of a queue beyond :after that have unfinished jobs, each by its open job, and the jobs
-- behind that up to :most. However many jobs a group has, the next one is a step away in the index.
WITH RECURSIVE names (name) AS (
    SELECT (SELECT group_id FROM jobs WHERE queue = :queue AND group_id > :after AND status <= {in_flight}
        ORDER BY group_id LIMIT 1)
    UNION ALL
    SELECT (SELECT group_id FROM jobs WHERE queue = :queue AND group_id > name AND status <= {in_flight}
        ORDER BY group_id LIMIT 1)
    FROM names WHERE name IS NOT NULL LIMIT :limit)
SELECT name, id, type, status, attempts, ready_at, dequeued_at, (
    SELECT count(*) FROM (SELECT 1 FROM jobs WHERE queue = :queue AND group_id = name
        AND held & 1 = 1 AND status <= {in_flight} LIMIT :most))
FROM names CROSS JOIN jobs ON id = (
    SELECT id FROM jobs WHERE queue = :queue AND group_id = name AND held & 1 = 0
        AND status <= {in_flight} LIMIT 1)
