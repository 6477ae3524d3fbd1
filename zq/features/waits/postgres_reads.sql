-- The facts that may keep a job waiting, each by a few steps or up to :most; what comes next; the leases that
-- end; groups.

-- name: in_flight_of
SELECT n FROM queue_totals WHERE queue = :queue AND status = {in_flight}

-- name: head_of_group
-- The index has the open jobs of a group before the others.
SELECT id FROM jobs WHERE queue = :queue AND group_id = :group AND (held & 1) = 0
    AND status <= {in_flight} LIMIT 1

-- name: canceller_of
-- Who has cancelled a job, and why, as far as that is known.
SELECT outline -> 'author' ->> 'actor', outline -> 'author' ->> 'reason'
FROM sweeps WHERE id = (SELECT swept FROM jobs WHERE id = :key)

-- name: turn_of
-- The fair key of a job, and its place among those that wait of up to :most keys of the queue.
WITH waiting AS (
    SELECT o.finish AS finish, coalesce(ol.weight, o.weight) AS weight
    FROM (SELECT * FROM shares WHERE queue = :queue LIMIT :most) AS o
    LEFT JOIN fair_limits AS ol ON ol.queue = ANY (ARRAY[o.queue]) AND ol.fair_key = o.fair_key
    WHERE o.waiting > 0)
SELECT s.in_flight, s.opens_at, l.max_in_flight, coalesce(l.weight, s.weight),
    before, keys, greatest(weights, coalesce(l.weight, s.weight))
FROM shares AS s
LEFT JOIN fair_limits AS l ON l.queue = s.queue AND l.fair_key = s.fair_key
CROSS JOIN (
    SELECT count(*) FILTER (WHERE finish < (
            SELECT finish FROM shares WHERE queue = :queue AND fair_key = :key)) AS before,
        count(*) AS keys, sum(weight) AS weights
    FROM waiting) AS counted
WHERE s.queue = :queue AND s.fair_key = :key AND s.waiting > 0

-- name: may_go
SELECT EXISTS (SELECT 1 FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue)
    OR (SELECT true FROM lines WHERE head IS NOT NULL AND shut_by IS NULL AND queue = :queue
        ORDER BY priority, head LIMIT 1) IS NOT NULL

-- name: behind
-- The ready jobs of a queue behind others of their groups, among the first :most of all its groups' jobs.
SELECT count(*) FILTER (WHERE is_behind) FROM (
    SELECT (held & 1) = 1 AND status = {ready} AS is_behind FROM jobs
    WHERE queue = :queue AND group_id IS NOT NULL AND status <= {in_flight}
    ORDER BY queue, group_id LIMIT :most) AS few

-- name: more_urgent_lines
-- Jobs in the lines of its queue that come before that of a job.
SELECT count(*) FROM (
    SELECT 1 FROM (
        SELECT id FROM lines WHERE head IS NOT NULL AND shut_by IS NULL AND queue = :queue
            AND priority < (
                SELECT priority FROM lines WHERE id = (SELECT line FROM jobs WHERE id = :key))
        ORDER BY priority, head) AS l
    CROSS JOIN LATERAL (
        SELECT 1 FROM jobs WHERE line = l.id AND status = {ready} AND held = 2 OFFSET 0) AS jobs
    LIMIT :most) AS few

-- name: scheduled_beside
-- The scheduled jobs of the same date behind a job. CONDITIONS stands for the reach of the caller.
SELECT {job_row} FROM jobs WHERE status = {scheduled} AND due_at IS NULL
    AND +ready_at = :ready_at AND id > :key AND CONDITIONS
ORDER BY id LIMIT :limit

-- name: scheduled_beyond
-- The scheduled jobs of later dates. CONDITIONS stands for the reach of the caller.
SELECT {job_row} FROM jobs WHERE status = {scheduled} AND due_at IS NULL
    AND +ready_at > :ready_at AND CONDITIONS
ORDER BY +ready_at, id LIMIT :limit

-- name: waiting_beside
-- Jobs that wait for a duration, of the same end of it.
SELECT {job_row} FROM jobs WHERE status = {scheduled} AND due_at = :due_at AND id > :key AND CONDITIONS
ORDER BY id LIMIT :limit

-- name: waiting_beyond
SELECT {job_row} FROM jobs WHERE status = {scheduled} AND due_at > :due_at AND CONDITIONS
ORDER BY due_at, id LIMIT :limit

-- name: running_long
-- The jobs in flight for the longest time, before :before, among the first :most by their ids, without those
-- on their way to another server, whose holders are negative. CONDITIONS stands for the reach of the caller.
SELECT {job_row} FROM (
    SELECT * FROM jobs
    WHERE status = ANY (ARRAY[{in_flight}]) AND status <> {ready} AND CONDITIONS
    ORDER BY status, id LIMIT :most) AS jobs
WHERE dequeued_at < :before AND holder >= 0 ORDER BY dequeued_at LIMIT :limit

-- name: groups
-- The first groups of a queue beyond :after that have unfinished jobs, each by its open job, and the jobs
-- behind that up to :most. However many jobs a group has, the next one is a step away in the index.
WITH RECURSIVE names (name, n) AS (
    SELECT (SELECT group_id FROM jobs WHERE queue = :queue AND group_id > :after AND status <= {in_flight}
        ORDER BY queue, group_id LIMIT 1), 1
    UNION ALL
    SELECT (SELECT group_id FROM jobs WHERE queue = :queue AND group_id > name AND status <= {in_flight}
        ORDER BY queue, group_id LIMIT 1), n + 1
    FROM names WHERE name IS NOT NULL AND n < :limit)
SELECT name, head.id, head.type, head.status, head.attempts, head.ready_at, head.dequeued_at, (
    SELECT count(*) FROM (SELECT 1 FROM jobs WHERE queue = :queue AND group_id = name
        AND (held & 1) = 1 AND status <= {in_flight} LIMIT :most) AS few)
FROM names JOIN jobs AS head ON head.id = ANY (ARRAY(
    SELECT id FROM jobs WHERE queue = :queue AND group_id = name AND (held & 1) = 0
        AND status <= {in_flight} LIMIT 1))
ORDER BY n
