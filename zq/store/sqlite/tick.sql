-- The statements of the tick. Rows go in as one JSON parameter and come out as one JSON value, so
-- that the number of statements, and of times the GIL changes hands, does not grow with the jobs.

-- name: read_held
-- The jobs in flight among the keys, with the columns that a settlement or a return needs.
SELECT json_group_array({brief_row})
FROM (SELECT value AS key FROM json_each(:keys)) CROSS JOIN jobs ON jobs.id = key
WHERE status = {in_flight}

-- name: read_briefs
-- The same for jobs in any state, for deletions.
SELECT json_group_array({brief_row})
FROM jobs WHERE id IN {keys}

-- name: read_all_in_flight
SELECT json_group_array(id) FROM jobs WHERE status = {in_flight} AND status <> {ready}

-- name: read_jobs
SELECT json_group_array({job_row}) FROM jobs WHERE id IN {keys}

-- name: look_behind
-- Looks at up to :limit jobs behind a key. The last of their keys, and the keys of those that are in
-- some queues and states.
WITH some AS (
    SELECT id, queue, status FROM jobs WHERE id > :after AND id < :upto ORDER BY id LIMIT :limit)
SELECT json_array(json_array(max(id), json_group_array(id) FILTER (
    WHERE queue IN (SELECT value FROM json_each(:queues))
    AND status IN (SELECT value FROM json_each(:statuses)))))
FROM some

-- name: read_payloads
SELECT json_group_array(json_array(job_id, body, checksum)) FROM payloads WHERE job_id IN {keys}

-- name: read_stale
-- :leases maps a key to the acknowledged delivery. The existing jobs of which this delivery has ended.
SELECT json_group_array(json_array(jobs.id, queue))
FROM json_each(:leases) AS l
JOIN jobs ON jobs.id = CAST(l.key AS INTEGER)
WHERE (status <> {in_flight} OR deliveries <> l.value) AND (purge_at IS NULL OR purge_at > :now)

-- name: read_current
-- :leases maps a key to a delivery. The jobs of which this delivery still goes on.
SELECT json_group_array(jobs.id)
FROM json_each(:leases) AS l
JOIN jobs ON jobs.id = CAST(l.key AS INTEGER)
WHERE status = {in_flight} AND deliveries = l.value

-- name: delete_jobs
DELETE FROM jobs WHERE id IN {keys}

-- name: delete_payloads
DELETE FROM payloads WHERE job_id IN {keys}

-- name: delete_results
DELETE FROM results WHERE job_id IN {keys}

-- name: delete_errors
DELETE FROM errors WHERE job_id IN {keys}

-- name: complete
-- :purges maps a key to its purge_at. An "active" lock ends here.
UPDATE jobs SET status = {completed}, {no_lease}, finished_at = :now, purge_at = p.value,
    owns_key = owns_key AND unique_while <> {while_active}
FROM json_each(:purges) AS p
WHERE jobs.id = CAST(p.key AS INTEGER) AND status = {in_flight}

-- name: complete_with_results
-- :completions lists [key, purge_at, result_size, result or null if it is stored apart, checksum].
UPDATE jobs SET status = {completed}, {no_lease}, finished_at = :now, purge_at = c.value ->> 1,
    result_size = c.value ->> 2, result = c.value ->> 3, result_checksum = c.value ->> 4,
    owns_key = owns_key AND unique_while <> {while_active}
FROM json_each(:completions) AS c
WHERE jobs.id = c.value ->> 0 AND status = {in_flight}

-- name: fail
-- :verdicts lists [key, attempts, ready_at, due_at or null].
UPDATE jobs SET status = {scheduled}, {no_lease}, attempts = v.value ->> 1, failed_at = :now,
    ready_at = v.value ->> 2, due_at = v.value ->> 3
FROM json_each(:verdicts) AS v
WHERE jobs.id = v.value ->> 0 AND status = {in_flight}

-- name: note_last_failures
-- :attempts maps a key to its attempts: the last failures of jobs that are about to be buried.
UPDATE jobs SET attempts = a.value, failed_at = :now
FROM json_each(:attempts) AS a
WHERE jobs.id = CAST(a.key AS INTEGER) AND status = {in_flight}

-- name: bury
-- :graves lists [key, purge_at, extras as an object or null]. An "active" lock ends here.
UPDATE jobs SET status = {dead}, {no_lease},
    finished_at = :now, purge_at = g.value ->> 1, extras = g.value ->> 2,
    owns_key = owns_key AND unique_while <> {while_active}
FROM json_each(:graves) AS g
WHERE jobs.id = g.value ->> 0 AND status = {in_flight}

-- name: revive
-- :revivals lists [key, status that it has, queue to be ready in, expires_at or null, extras, options,
-- checksum].
-- A key of a queue is given up, since another job may have it in the new queue. A dead letter gives up
-- any key. A job that waits already still waits for its budgets.
UPDATE jobs SET status = {ready}, queue = r.value ->> 2, ready_at = :now, held = held & 2, {no_lease},
    finished_at = NULL, purge_at = NULL,
    forgiven = attempts, stalls = 0, expires_at = r.value ->> 3, extras = r.value ->> 4,
    due_at = NULL, ttl_ms = NULL,
    options = r.value ->> 5, checksum = r.value ->> 6, owns_key = owns_key AND (unique_in = {in_all} OR queue = r.value ->> 2)
        AND r.value ->> '$[4].origin' IS NULL
FROM json_each(:revivals) AS r
WHERE jobs.id = r.value ->> 0 AND status = r.value ->> 1
    AND status IN ({scheduled}, {ready}, {in_flight}, {dead})

-- name: restore_all_locks
-- Jobs that come back take their key back, unless the index says another has it by now.
UPDATE OR IGNORE jobs SET owns_key = 1
WHERE id IN {keys} AND owns_key = 0 AND status <= {ready} AND unique_key IS NOT NULL
    AND extras ->> '$.origin' IS NULL

-- name: expire
-- :ends lists [key, purge_at]. The key of an expired job is free.
UPDATE jobs SET status = {expired}, held = 0, line = NULL, finished_at = :now, purge_at = e.value ->> 1,
    owns_key = 0
FROM json_each(:ends) AS e
WHERE jobs.id = e.value ->> 0 AND status IN ({scheduled}, {ready})

-- name: read_lapsed
SELECT json_group_array(id) FROM (
    SELECT id FROM jobs WHERE expires_at IS NOT NULL AND status <= {ready} AND expires_at <= :now
    ORDER BY expires_at LIMIT :limit)

-- name: give_back
-- :holders maps a key to the holder whose stream has ended.
UPDATE jobs SET status = {ready}, {no_lease}
FROM json_each(:holders) AS h
WHERE jobs.id = CAST(h.key AS INTEGER) AND status = {in_flight} AND holder = h.value

-- name: release
-- :times lists [key, ready_at and due_at, or null if the job is ready in its old place].
UPDATE jobs SET status = iif(t.value ->> 1 IS NULL, {ready}, {scheduled}), {no_lease},
    ready_at = ifnull(t.value ->> 1, ready_at), due_at = t.value ->> 2
FROM json_each(:times) AS t
WHERE jobs.id = t.value ->> 0 AND status = {in_flight}

-- name: extend
-- :deadlines maps a key to the new lease_until.
UPDATE jobs SET lease_until = d.value
FROM json_each(:deadlines) AS d
WHERE jobs.id = CAST(d.key AS INTEGER) AND status = {in_flight}

-- name: forgive_stall
UPDATE jobs SET stalls = stalls - 1 WHERE id IN {keys} AND status = {in_flight} AND stalls > 0

-- name: read_overdue
SELECT json_group_array(id) FROM (
    SELECT id FROM jobs WHERE lease_until IS NOT NULL AND lease_until < :now
    ORDER BY lease_until LIMIT :limit)

-- name: stall
UPDATE jobs SET status = {ready}, {no_lease}, stalls = stalls + 1
WHERE id IN {keys} AND status = {in_flight}

-- name: read_lost
-- The jobs among the keys that wait again, since the lease of their last delivery was over.
SELECT json_group_array({job_row}) FROM jobs
WHERE id IN {keys} AND status = {ready} AND held IN (0, 2) AND stalls > 0
    AND ifnull(failed_at, 0) < dequeued_at AND (expires_at IS NULL OR expires_at > :now)

-- name: resume
-- :claimants maps a key to the name of the claimant that had the last delivery, which goes on.
UPDATE jobs SET status = {in_flight}, held = 0, line = NULL, holder = 0, claimant = c.value,
    lease_until = :steady, owns_key = owns_key AND unique_while <> {while_queued}
FROM json_each(:claimants) AS c
WHERE jobs.id = CAST(c.key AS INTEGER) AND status = {ready}

-- name: count_stalls
UPDATE jobs SET stalls = stalls + 1 WHERE id IN {keys} AND status = {in_flight}

-- name: restore_locks
-- "queued" owners that wait again take their key back, unless the index says another has it by now.
UPDATE OR IGNORE jobs SET owns_key = 1
WHERE id IN {keys} AND owns_key = 0 AND unique_while = {while_queued}
    AND status IN ({scheduled}, {ready}) AND extras ->> '$.origin' IS NULL

-- name: change
-- :changes lists [key, queue, priority, status, ready_at, options as an object or null, due_at,
-- expires_at, ttl_ms, checksum].
UPDATE jobs SET queue = c.value ->> 1, priority = c.value ->> 2, status = c.value ->> 3,
    ready_at = c.value ->> 4, options = c.value ->> 5, due_at = c.value ->> 6,
    expires_at = c.value ->> 7, ttl_ms = c.value ->> 8, checksum = c.value ->> 9,
    owns_key = owns_key AND (unique_in = {in_all} OR queue = c.value ->> 1)
FROM json_each(:changes) AS c
WHERE jobs.id = c.value ->> 0 AND status IN ({scheduled}, {ready}, {in_flight})

-- name: restore_moved_locks
-- Jobs that moved to another queue take their key there, unless the index says another has it.
UPDATE OR IGNORE jobs SET owns_key = 1
WHERE id IN {keys} AND owns_key = 0 AND unique_in = {in_queue} AND extras ->> '$.origin' IS NULL
    AND (status < {in_flight} OR unique_while <> {while_queued})

-- name: narrow_locks
-- The keys of these jobs are looked for in their queues from now on. They have yet to take them there.
UPDATE jobs SET unique_in = {in_queue}, owns_key = 0 WHERE id IN {keys}

-- name: cancel
-- :ends lists [key, purge_at, sweep or null]. The key of a cancelled job is free.
UPDATE jobs SET status = {cancelled}, held = 0, line = NULL, holder = NULL, finished_at = :now,
    purge_at = e.value ->> 1, swept = e.value ->> 2, owns_key = 0,
    due_at = iif(status = {ready}, :steady, due_at)
FROM json_each(:ends) AS e
WHERE jobs.id = e.value ->> 0 AND status IN ({scheduled}, {ready})

-- name: cancel_by_force
UPDATE jobs SET status = {cancelled}, held = 0, line = NULL, {no_lease}, finished_at = :now,
    purge_at = e.value ->> 1, swept = e.value ->> 2, owns_key = 0,
    due_at = iif(status = {scheduled}, due_at, :steady)
FROM json_each(:ends) AS e
WHERE jobs.id = e.value ->> 0 AND status IN ({scheduled}, {ready}, {in_flight})

-- name: undo
-- :restored lists [key, status, queue, due_at, expires_at, ttl_ms].
UPDATE jobs SET status = r.value ->> 1, queue = r.value ->> 2, finished_at = NULL, purge_at = NULL,
    due_at = r.value ->> 3, expires_at = r.value ->> 4, ttl_ms = r.value ->> 5,
    swept = NULL
FROM json_each(:restored) AS r
WHERE jobs.id = r.value ->> 0 AND status = {cancelled} AND swept IS NOT NULL

-- name: retain
UPDATE jobs SET purge_at = :purge_at
WHERE id = :key AND status IN ({completed}, {dead}, {cancelled}, {expired})

-- name: replace_payloads
-- :payloads lists [key, payload_size, payload or null if it is stored apart, checksum].
UPDATE jobs SET payload_size = p.value ->> 1, payload = p.value ->> 2, checksum = p.value ->> 3
FROM json_each(:payloads) AS p
WHERE jobs.id = p.value ->> 0 AND status IN ({scheduled}, {ready})

-- name: replace_extras
-- :extras lists [key, extras as an object or null].
UPDATE jobs SET extras = e.value ->> 1
FROM json_each(:extras) AS e
WHERE jobs.id = e.value ->> 0 AND status IN ({scheduled}, {ready})

-- name: read_owners
-- NAMES stands for one parameter a key: json_each would cut a key short at a NUL.
SELECT json_group_array({job_row}) FROM jobs
WHERE owns_key = 1 AND key_lock IN (NAMES)

-- name: release_locks
UPDATE jobs SET owns_key = 0 WHERE id IN {keys}

-- name: read_due
-- The first jobs in dispatch order of the :window whose dates have come for the longest time.
SELECT json_group_array(json_array(id, queue, NULL, status)) FROM (
    SELECT id, queue, status FROM jobs WHERE id IN (
        SELECT id FROM (
            SELECT id, priority FROM jobs
            WHERE status = {scheduled} AND due_at IS NULL AND ready_at <= :now
            ORDER BY ready_at, id LIMIT :window)
        ORDER BY priority, id LIMIT :limit))

-- name: read_due_briefs
-- The same with the columns that budgets need.
SELECT json_group_array({brief_row}) FROM (
    SELECT * FROM jobs WHERE id IN (
        SELECT id FROM (
            SELECT id, priority FROM jobs
            WHERE status = {scheduled} AND due_at IS NULL AND ready_at <= :now
            ORDER BY ready_at, id LIMIT :window)
        ORDER BY priority, id LIMIT :limit))

-- name: read_waited
-- The same jobs of those whose wait is over.
SELECT json_group_array(json_array(id, queue, NULL, status)) FROM (
    SELECT id, queue, status FROM jobs WHERE id IN (
        SELECT id FROM (
            SELECT id, priority FROM jobs WHERE status = {scheduled} AND due_at <= :now
            ORDER BY due_at, id LIMIT :window)
        ORDER BY priority, id LIMIT :limit))

-- name: read_waited_briefs
SELECT json_group_array({brief_row}) FROM (
    SELECT * FROM jobs WHERE id IN (
        SELECT id FROM (
            SELECT id, priority FROM jobs WHERE status = {scheduled} AND due_at <= :now
            ORDER BY due_at, id LIMIT :window)
        ORDER BY priority, id LIMIT :limit))

-- name: promote
-- The date at which a wait is over is known by now, and so is when a job expires that waited for a date.
UPDATE jobs SET status = {ready},
    ready_at = ifnull(due_at - (:steady - :now), ready_at), due_at = NULL,
    expires_at = ifnull(expires_at, ready_at + (:steady - :now) + ttl_ms), ttl_ms = NULL
WHERE id IN {keys} AND status = {scheduled}

-- name: shut_groups
-- :groups lists [queue, group]. Shuts open jobs that wait. The index has the open jobs of a group before
-- the others, so this statement and the next take one step in it, however long the group is.
UPDATE jobs SET held = held | 1
WHERE id IN (
    SELECT id FROM (SELECT value ->> 0 AS q, value ->> 1 AS g FROM json_each(:groups))
    CROSS JOIN jobs ON queue = q AND group_id = g AND held & 1 = 0 AND status <= {in_flight}
    WHERE status < {in_flight})

-- name: open_groups
-- :groups lists [queue, group]. Opens the lowest job of each that has none open, not even in flight.
-- The LIMIT makes SQLite read each name from the JSON only once.
UPDATE jobs SET held = held & ~1
WHERE id IN (
    SELECT (SELECT id FROM jobs WHERE queue = q AND group_id = g
        AND held & 1 = 1 AND status <= {in_flight} ORDER BY id LIMIT 1)
    FROM (SELECT value ->> 0 AS q, value ->> 1 AS g FROM json_each(:groups) LIMIT -1)
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE queue = q AND group_id = g
        AND held & 1 = 0 AND status <= {in_flight}))

-- name: deadlines
-- In the order of `zq.model.commands.Due`.
SELECT
    (SELECT lease_until + 1 FROM jobs WHERE lease_until IS NOT NULL ORDER BY lease_until LIMIT 1),
    (SELECT expires_at FROM jobs WHERE expires_at IS NOT NULL AND status <= {ready}
        ORDER BY expires_at LIMIT 1),
    (SELECT ready_at FROM jobs WHERE status = {scheduled} AND due_at IS NULL
        ORDER BY ready_at, id LIMIT 1),
    (SELECT due_at FROM jobs WHERE status = {scheduled} AND due_at IS NOT NULL
        ORDER BY due_at, id LIMIT 1),
    (SELECT purge_at FROM jobs WHERE purge_at IS NOT NULL ORDER BY purge_at LIMIT 1),
    (SELECT until FROM dedupe ORDER BY until LIMIT 1),
    (SELECT trim_at FROM logs WHERE trim_at IS NOT NULL ORDER BY trim_at LIMIT 1),
    (SELECT pays_at FROM budgets WHERE pays_at IS NOT NULL ORDER BY pays_at LIMIT 1),
    (SELECT trim_at FROM topics WHERE trim_at IS NOT NULL ORDER BY trim_at LIMIT 1),
    (SELECT until FROM topic_writes ORDER BY until LIMIT 1),
    (SELECT paused_until FROM queue_settings WHERE paused_until IS NOT NULL
        ORDER BY paused_until LIMIT 1),
    (SELECT opens_at FROM shares WHERE opens_at IS NOT NULL ORDER BY opens_at LIMIT 1)

-- name: read_purgeable
SELECT json_group_array(id) FROM (
    SELECT id FROM jobs WHERE purge_at IS NOT NULL AND purge_at <= :now LIMIT :limit)

-- name: read_names
-- :names lists [queue, group or '', name]. The known ones, with the keys of their jobs.
SELECT json_group_array(json_array(queue, group_id, name, job_id))
FROM (SELECT value ->> 0 AS q, value ->> 1 AS g, value ->> 2 AS n FROM json_each(:names))
CROSS JOIN dedupe ON queue = q AND group_id = g AND name = n
WHERE until > :now

-- name: write_names
-- :names lists [queue, group or '', name, key, until].
INSERT OR REPLACE INTO dedupe (queue, group_id, name, job_id, until)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(:names)

-- name: share_names
-- The names that a queue knows hold in a target of it, too.
INSERT INTO dedupe (queue, group_id, name, job_id, until)
SELECT :target, group_id, name, job_id, until FROM dedupe
WHERE queue = :queue AND until > :now
ON CONFLICT (queue, group_id, name) DO UPDATE
SET job_id = excluded.job_id, until = excluded.until WHERE excluded.until > until

-- name: forget_names
DELETE FROM dedupe WHERE (queue, group_id, name) IN (
    SELECT queue, group_id, name FROM dedupe WHERE until <= :now ORDER BY until LIMIT :limit)

-- name: count
-- :deltas lists [queue, status, change].
INSERT INTO queue_counts (queue, status, n)
SELECT d.value ->> 0, d.value ->> 1, (d.value ->> 2) + ifnull(c.n, 0)
FROM json_each(:deltas) AS d
LEFT JOIN queue_counts AS c ON c.queue = d.value ->> 0 AND c.status = d.value ->> 1
WHERE true
ON CONFLICT (queue, status) DO UPDATE SET n = excluded.n

-- name: count_up
INSERT INTO queue_counts (queue, status, n) VALUES (:queue, :status, :n)
ON CONFLICT (queue, status) DO UPDATE SET n = n + excluded.n

-- name: count_down
UPDATE queue_counts SET n = n + :n WHERE queue = :queue AND status = :status

-- name: count_all
SELECT cast(total(n) AS INTEGER) FROM queue_counts

-- name: raise_high_water
UPDATE meta SET value = :key WHERE name = 'high_water'

-- name: acknowledge_damage
UPDATE quarantine SET acknowledged_at = :now WHERE acknowledged_at IS NULL
