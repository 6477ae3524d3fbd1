-- The statements of the tick. Rows go in as arrays, one a column, so that the number of statements does
-- not grow with the jobs. Each has one possible plan: `zq.store.postgres.queries` says how. The order of
-- locks is: keys, groups, jobs, counts.

-- name: read_held
-- The jobs in flight among the keys, with the columns that a settlement or a return needs.
SELECT {brief_row} FROM jobs WHERE id = {keys} AND +status = {in_flight} FOR UPDATE

-- name: read_briefs
-- The jobs among the keys in any state, with these columns, for deletions.
SELECT {brief_row} FROM jobs WHERE id = {keys} ORDER BY id FOR UPDATE

-- name: read_all_in_flight
SELECT id FROM jobs WHERE status = {in_flight} AND status <> {ready}

-- name: read_jobs
SELECT {job_row} FROM jobs WHERE id = {keys} ORDER BY id FOR UPDATE

-- name: look_behind
-- Looks at up to :limit jobs behind a key. The last of their keys, and the keys of those that are in
-- some queues and states.
WITH seen AS (
    SELECT id, queue, status FROM jobs WHERE id > :after AND id < :upto ORDER BY id LIMIT :limit)
SELECT max(id), coalesce(array_agg(id ORDER BY id) FILTER (
    WHERE queue = ANY (:queues::text[]) AND status = ANY (:statuses::smallint[])), '{{}}')
FROM seen

-- name: read_payloads
SELECT job_id, body, checksum FROM payloads WHERE job_id = {keys}

-- name: read_stale
-- :leases maps a key to the acknowledged delivery. The existing jobs of which this delivery has ended.
SELECT jobs.id, queue
FROM unnest(:leases.keys::bigint[], :leases.values::bigint[]) AS l (key, delivery)
JOIN jobs ON jobs.id = ANY (ARRAY[l.key])
WHERE (status <> {in_flight} OR deliveries <> l.delivery) AND (purge_at IS NULL OR purge_at > :now)

-- name: read_current
-- :leases maps a key to a delivery. The jobs of which this delivery still goes on.
SELECT jobs.id
FROM unnest(:leases.keys::bigint[], :leases.values::bigint[]) AS l (key, delivery)
JOIN jobs ON jobs.id = ANY (ARRAY[l.key])
WHERE +status = {in_flight} AND deliveries = l.delivery

-- name: delete_jobs
DELETE FROM jobs WHERE id = {keys}

-- name: delete_payloads
DELETE FROM payloads WHERE job_id = {keys}

-- name: delete_results
DELETE FROM results WHERE job_id = {keys}

-- name: delete_errors
DELETE FROM errors WHERE job_id = {keys}

-- name: complete
-- :purges maps a key to its purge_at. An "active" lock ends here.
UPDATE jobs SET status = {completed}, {no_lease}, finished_at = :now, purge_at = p.at,
    owns_key = owns_key AND unique_while <> {while_active}
FROM unnest(:purges.keys::bigint[], :purges.values::bigint[]) AS p (key, at)
WHERE jobs.id = ANY (ARRAY[p.key]) AND +status = {in_flight}

-- name: complete_with_results
-- :completions lists [key, purge_at, result_size, result or null if it is stored apart, checksum].
UPDATE jobs SET status = {completed}, {no_lease}, finished_at = :now, purge_at = c.at,
    result_size = c.size, result = c.body, result_checksum = c.sum,
    owns_key = owns_key AND unique_while <> {while_active}
FROM unnest(:completions.0::bigint[], :completions.1::bigint[], :completions.2::bigint[],
    :completions.3::text[], :completions.4::bigint[]) AS c (key, at, size, body, sum)
WHERE jobs.id = ANY (ARRAY[c.key]) AND +status = {in_flight}

-- name: fail
-- :verdicts lists [key, attempts, ready_at, due_at or null].
UPDATE jobs SET status = {scheduled}, {no_lease}, attempts = v.n, failed_at = :now,
    ready_at = v.at, due_at = v.due
FROM unnest(:verdicts.0::bigint[], :verdicts.1::bigint[], :verdicts.2::bigint[],
    :verdicts.3::bigint[]) AS v (key, n, at, due)
WHERE jobs.id = ANY (ARRAY[v.key]) AND +status = {in_flight}

-- name: note_last_failures
-- :attempts maps a key to its attempts: the last failures of jobs that are about to be buried.
UPDATE jobs SET attempts = a.n, failed_at = :now
FROM unnest(:attempts.keys::bigint[], :attempts.values::bigint[]) AS a (key, n)
WHERE jobs.id = ANY (ARRAY[a.key]) AND +status = {in_flight}

-- name: bury
-- :graves lists [key, purge_at, extras as an object or null]. An "active" lock ends here.
UPDATE jobs SET status = {dead}, {no_lease},
    finished_at = :now, purge_at = g.at, extras = g.said,
    owns_key = owns_key AND unique_while <> {while_active}
FROM unnest(:graves.0::bigint[], :graves.1::bigint[], :graves.2::json[]) AS g (key, at, said)
WHERE jobs.id = ANY (ARRAY[g.key]) AND +status = {in_flight}

-- name: revive
-- :revivals lists [key, status that it has, queue to be ready in, expires_at or null, extras, options,
-- checksum].
-- A key of a queue is given up, since another job may have it in the new queue. A dead letter gives up
-- any key. A job that waits already still waits for its budgets.
UPDATE jobs SET status = {ready}, queue = r.q, ready_at = :now, held = held & 2, {no_lease},
    finished_at = NULL, purge_at = NULL,
    forgiven = attempts, stalls = 0, expires_at = r.ends, extras = r.said,
    due_at = NULL, ttl_ms = NULL, options = r.opts, checksum = r.sum,
    owns_key = owns_key AND (unique_in = {in_all} OR queue = r.q) AND r.said ->> 'origin' IS NULL
FROM unnest(:revivals.0::bigint[], :revivals.1::smallint[], :revivals.2::text[],
    :revivals.3::bigint[], :revivals.4::json[], :revivals.5::json[], :revivals.6::bigint[])
    AS r (key, was, q, ends, said, opts, sum)
WHERE jobs.id = ANY (ARRAY[r.key]) AND +status = r.was
    AND +status IN ({scheduled}, {ready}, {in_flight}, {dead})

-- name: restore_all_locks
-- Jobs that come back take their key back, unless another has it by now. Of several, the oldest one does.
UPDATE jobs SET owns_key = true
WHERE id = ANY (ARRAY(
    SELECT min(id) FROM jobs AS j
    WHERE id = {keys} AND NOT owns_key AND +status <= {ready} AND unique_key IS NOT NULL
        AND extras ->> 'origin' IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM jobs AS o WHERE o.owns_key AND o.key_lock = j.key_lock OFFSET 0)
    GROUP BY key_lock))

-- name: expire
-- :ends lists [key, purge_at]. The key of an expired job is free.
UPDATE jobs SET status = {expired}, held = 0, line = NULL, finished_at = :now, purge_at = e.at,
    owns_key = false
FROM unnest(:ends.0::bigint[], :ends.1::bigint[]) AS e (key, at)
WHERE jobs.id = ANY (ARRAY[e.key]) AND +status IN ({scheduled}, {ready})

-- name: read_lapsed
SELECT id FROM jobs WHERE expires_at IS NOT NULL AND status <= {ready} AND expires_at <= :now
ORDER BY expires_at LIMIT :limit

-- name: give_back
-- :holders maps a key to the holder whose stream has ended.
UPDATE jobs SET status = {ready}, {no_lease}
FROM unnest(:holders.keys::bigint[], :holders.values::bigint[]) AS h (key, had)
WHERE jobs.id = ANY (ARRAY[h.key]) AND +status = {in_flight} AND holder = h.had

-- name: release
-- :times lists [key, ready_at and due_at, or null if the job is ready in its old place].
UPDATE jobs SET status = CASE WHEN t.at IS NULL THEN {ready} ELSE {scheduled} END, {no_lease},
    ready_at = coalesce(t.at, ready_at), due_at = t.due
FROM unnest(:times.0::bigint[], :times.1::bigint[], :times.2::bigint[]) AS t (key, at, due)
WHERE jobs.id = ANY (ARRAY[t.key]) AND +status = {in_flight}

-- name: extend
-- :deadlines maps a key to the new lease_until.
UPDATE jobs SET lease_until = d.at
FROM unnest(:deadlines.keys::bigint[], :deadlines.values::bigint[]) AS d (key, at)
WHERE jobs.id = ANY (ARRAY[d.key]) AND +status = {in_flight}

-- name: forgive_stall
UPDATE jobs SET stalls = stalls - 1 WHERE id = {keys} AND +status = {in_flight} AND stalls > 0

-- name: read_overdue
SELECT id FROM jobs WHERE lease_until IS NOT NULL AND lease_until < :now
ORDER BY lease_until LIMIT :limit

-- name: stall
UPDATE jobs SET status = {ready}, {no_lease}, stalls = stalls + 1
WHERE id = {keys} AND +status = {in_flight}

-- name: read_lost
-- The jobs among the keys that wait again, since the lease of their last delivery was over.
SELECT {job_row} FROM jobs
WHERE id = {keys} AND +status = {ready} AND held IN (0, 2) AND stalls > 0
    AND coalesce(failed_at, 0) < dequeued_at AND (expires_at IS NULL OR expires_at > :now)
ORDER BY id FOR UPDATE

-- name: resume
-- :claimants maps a key to the name of the claimant that had the last delivery, which goes on.
UPDATE jobs SET status = {in_flight}, held = 0, line = NULL, holder = 0, claimant = c.name,
    lease_until = :steady, owns_key = owns_key AND unique_while <> {while_queued}
FROM unnest(:claimants.keys::bigint[], :claimants.values::text[]) AS c (key, name)
WHERE jobs.id = ANY (ARRAY[c.key]) AND +status = {ready}

-- name: count_stalls
UPDATE jobs SET stalls = stalls + 1 WHERE id = {keys} AND +status = {in_flight}

-- name: restore_locks
-- "queued" owners that wait again take their key back, unless another has it by now. Of several, the
-- oldest one does.
UPDATE jobs SET owns_key = true
WHERE id = ANY (ARRAY(
    SELECT min(id) FROM jobs AS j
    WHERE id = {keys} AND NOT owns_key AND unique_while = {while_queued}
        AND +status IN ({scheduled}, {ready}) AND extras ->> 'origin' IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM jobs AS o WHERE o.owns_key AND o.key_lock = j.key_lock OFFSET 0)
    GROUP BY key_lock))

-- name: change
-- :changes lists [key, queue, priority, status, ready_at, options as an object or null, due_at,
-- expires_at, ttl_ms, checksum].
UPDATE jobs SET queue = c.q, priority = c.prio, status = c.state, ready_at = c.at, options = c.opts,
    due_at = c.due, expires_at = c.ends, ttl_ms = c.ttl, checksum = c.sum,
    owns_key = owns_key AND (unique_in = {in_all} OR queue = c.q)
FROM unnest(:changes.0::bigint[], :changes.1::text[], :changes.2::integer[], :changes.3::smallint[],
    :changes.4::bigint[], :changes.5::json[], :changes.6::bigint[], :changes.7::bigint[],
    :changes.8::bigint[], :changes.9::bigint[])
    AS c (key, q, prio, state, at, opts, due, ends, ttl, sum)
WHERE jobs.id = ANY (ARRAY[c.key]) AND +status IN ({scheduled}, {ready}, {in_flight})

-- name: restore_moved_locks
-- Jobs that moved to another queue take their key there, unless another has it. Of several, the oldest
-- one does.
UPDATE jobs SET owns_key = true
WHERE id = ANY (ARRAY(
    SELECT min(id) FROM jobs AS j
    WHERE id = {keys} AND NOT owns_key AND unique_in = {in_queue} AND unique_key IS NOT NULL
        AND extras ->> 'origin' IS NULL
        AND (+status < {in_flight} OR unique_while <> {while_queued})
        AND NOT EXISTS (
            SELECT 1 FROM jobs AS o WHERE o.owns_key AND o.key_lock = j.key_lock OFFSET 0)
    GROUP BY key_lock))

-- name: narrow_locks
-- The keys of these jobs are looked for in their queues from now on. They have yet to take them there.
UPDATE jobs SET unique_in = {in_queue}, owns_key = false WHERE id = {keys}

-- name: cancel
-- :ends lists [key, purge_at, sweep or null]. The key of a cancelled job is free.
UPDATE jobs SET status = {cancelled}, held = 0, line = NULL, holder = NULL, finished_at = :now,
    purge_at = e.at, swept = e.sweep, owns_key = false,
    due_at = CASE WHEN status = {ready} THEN :steady::bigint ELSE due_at END
FROM unnest(:ends.0::bigint[], :ends.1::bigint[], :ends.2::bigint[]) AS e (key, at, sweep)
WHERE jobs.id = ANY (ARRAY[e.key]) AND +status IN ({scheduled}, {ready})

-- name: cancel_by_force
UPDATE jobs SET status = {cancelled}, held = 0, line = NULL, {no_lease}, finished_at = :now,
    purge_at = e.at, swept = e.sweep, owns_key = false,
    due_at = CASE WHEN status = {scheduled} THEN due_at ELSE :steady::bigint END
FROM unnest(:ends.0::bigint[], :ends.1::bigint[], :ends.2::bigint[]) AS e (key, at, sweep)
WHERE jobs.id = ANY (ARRAY[e.key]) AND +status IN ({scheduled}, {ready}, {in_flight})

-- name: undo
-- :restored lists [key, status, queue, due_at, expires_at, ttl_ms].
UPDATE jobs SET status = r.state, queue = r.q, finished_at = NULL, purge_at = NULL,
    due_at = r.due, expires_at = r.ends, ttl_ms = r.ttl,
    swept = NULL
FROM unnest(:restored.0::bigint[], :restored.1::smallint[], :restored.2::text[],
    :restored.3::bigint[], :restored.4::bigint[], :restored.5::bigint[])
    AS r (key, state, q, due, ends, ttl)
WHERE jobs.id = ANY (ARRAY[r.key]) AND +status = {cancelled} AND swept IS NOT NULL

-- name: retain
UPDATE jobs SET purge_at = :purge_at
WHERE id = :key AND +status IN ({completed}, {dead}, {cancelled}, {expired})

-- name: replace_payloads
-- :payloads lists [key, payload_size, payload or null if it is stored apart, checksum].
UPDATE jobs SET payload_size = p.size, payload = p.body, checksum = p.sum
FROM unnest(:payloads.0::bigint[], :payloads.1::bigint[], :payloads.2::text[], :payloads.3::bigint[])
    AS p (key, size, body, sum)
WHERE jobs.id = ANY (ARRAY[p.key]) AND +status IN ({scheduled}, {ready})

-- name: replace_extras
-- :extras lists [key, extras as an object or null].
UPDATE jobs SET extras = e.said
FROM unnest(:extras.0::bigint[], :extras.1::json[]) AS e (key, said)
WHERE jobs.id = ANY (ARRAY[e.key]) AND +status IN ({scheduled}, {ready})

-- name: read_owners
SELECT {job_row} FROM jobs WHERE owns_key AND key_lock = ANY (:names::text[])

-- name: release_locks
UPDATE jobs SET owns_key = false WHERE id = {keys}

-- name: read_due
-- The first jobs in dispatch order of the :window whose dates have come for the longest time.
SELECT {brief_row} FROM jobs WHERE id = ANY (ARRAY(
    SELECT id FROM (
        SELECT id, priority FROM jobs
        WHERE status = {scheduled} AND due_at IS NULL AND +ready_at <= :now
        ORDER BY +ready_at, id LIMIT :window) AS due
    ORDER BY priority, id LIMIT :limit))
    AND +status = {scheduled}
ORDER BY id FOR UPDATE SKIP LOCKED

-- name: read_waited
-- The first jobs in dispatch order of the :window whose waits have been over for the longest time.
SELECT {brief_row} FROM jobs WHERE id = ANY (ARRAY(
    SELECT id FROM (
        SELECT id, priority FROM jobs WHERE status = {scheduled} AND due_at <= :now
        ORDER BY due_at, id LIMIT :window) AS due
    ORDER BY priority, id LIMIT :limit))
    AND +status = {scheduled}
ORDER BY id FOR UPDATE SKIP LOCKED

-- name: promote
-- The date at which a wait is over is known by now, and so is when a job expires that waited for a date.
UPDATE jobs SET status = {ready},
    ready_at = coalesce(due_at - (:steady::bigint - :now::bigint), ready_at), due_at = NULL,
    expires_at = coalesce(expires_at, ready_at + (:steady::bigint - :now::bigint) + ttl_ms),
    ttl_ms = NULL
WHERE id = {keys} AND +status = {scheduled}

-- name: shut_groups
-- :groups lists [queue, group]. Shuts open jobs that wait.
UPDATE jobs SET held = held | 1
WHERE id = ANY (ARRAY(
    SELECT j.id FROM unnest(:groups.0::text[], :groups.1::text[]) AS g (q, name)
    CROSS JOIN LATERAL (
        SELECT id, status FROM jobs
        WHERE queue = g.q AND group_id = g.name AND held & 1 = 0 AND status <= {in_flight}
        OFFSET 0) AS j
    WHERE j.status < {in_flight}))

-- name: open_groups
-- :groups lists [queue, group]. Opens the lowest job of each that has none open, not even in flight.
UPDATE jobs SET held = held & ~1
WHERE id = ANY (ARRAY(
    SELECT (SELECT id FROM jobs WHERE queue = g.q AND group_id = g.name
        AND held & 1 = 1 AND status <= {in_flight} ORDER BY id LIMIT 1)
    FROM unnest(:groups.0::text[], :groups.1::text[]) AS g (q, name)
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE queue = g.q AND group_id = g.name
        AND held & 1 = 0 AND status <= {in_flight} OFFSET 0)))

-- name: deadlines
-- In the order of `zq.model.commands.Due`.
SELECT
    (SELECT least(lease_until, 9223372036854775806) + 1 FROM jobs WHERE lease_until IS NOT NULL
        ORDER BY lease_until LIMIT 1),
    (SELECT expires_at FROM jobs WHERE expires_at IS NOT NULL AND status <= {ready}
        ORDER BY expires_at LIMIT 1),
    (SELECT ready_at FROM jobs WHERE status = {scheduled} AND due_at IS NULL
        ORDER BY +ready_at, id LIMIT 1),
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
SELECT id FROM jobs WHERE purge_at IS NOT NULL AND purge_at <= :now ORDER BY purge_at LIMIT :limit

-- name: read_names
-- :names lists [queue, group or '', name]. The known ones, with the keys of their jobs.
SELECT queue, group_id, name, job_id
FROM unnest(:names.0::text[], :names.1::text[], :names.2::text[]) AS n (q, g, called)
JOIN dedupe ON queue = ANY (ARRAY[q]) AND group_id = g AND name = called
WHERE +until > :now

-- name: write_names
-- :names lists [queue, group or '', name, key, until]. The last one of a name counts.
INSERT INTO dedupe (queue, group_id, name, job_id, until)
SELECT DISTINCT ON (q, g, called) q, g, called, key, ends
FROM unnest(:names.0::text[], :names.1::text[], :names.2::text[], :names.3::bigint[],
    :names.4::bigint[]) WITH ORDINALITY AS n (q, g, called, key, ends, nth)
ORDER BY q, g, called, nth DESC
ON CONFLICT (queue, group_id, name) DO UPDATE
SET job_id = excluded.job_id, until = excluded.until

-- name: share_names
-- The names that a queue knows hold in a target of it, too.
INSERT INTO dedupe (queue, group_id, name, job_id, until)
SELECT :target::text, group_id, name, job_id, until FROM dedupe
WHERE queue = :queue AND +until > :now
ON CONFLICT (queue, group_id, name) DO UPDATE
SET job_id = excluded.job_id, until = excluded.until WHERE excluded.until > dedupe.until

-- name: forget_names
DELETE FROM dedupe WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM dedupe WHERE until <= :now ORDER BY until LIMIT :limit))

-- name: count
-- :deltas lists [queue, status, change] for the rows of this server's slot.
WITH deltas AS (
    SELECT * FROM unnest(:deltas.0::text[], :deltas.1::smallint[], :deltas.2::bigint[])
        AS d (name, state, change)
), changed AS (
    UPDATE queue_counts SET n = n + d.change FROM deltas AS d
    WHERE queue = ANY (ARRAY[d.name]) AND status = d.state AND +slot = :slot
    RETURNING queue, status
)
INSERT INTO queue_counts (queue, status, slot, n)
SELECT name, state, :slot, change FROM deltas
WHERE NOT EXISTS (SELECT 1 FROM changed WHERE queue = name AND status = state)

-- name: count_all
SELECT coalesce(sum(n), 0)::bigint FROM queue_counts

-- name: raise_high_water
UPDATE meta SET value = greatest(value::bigint, :key::bigint)::text WHERE name = 'high_water'

-- name: matching
SELECT id FROM jobs WHERE id = ANY (:slice::bigint[]) AND CONDITIONS ORDER BY id
