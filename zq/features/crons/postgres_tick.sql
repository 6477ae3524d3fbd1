-- Cron: the statements by which the tick writes entries and moves them on.

-- name: write_crons
-- :entries lists [name, expression, timezone, paused, paused_at, resumed_at, next_at, last_at,
-- timed_at, queue, job, checksum]. Existing entries keep their last_at; the :kept ones also their next_at.
INSERT INTO cron_entries (cron, name, expression, timezone, paused, paused_at, resumed_at, next_at,
    last_at, timed_at, queue, job, checksum)
SELECT :cron, name, expression, zone, paused, since, again, next, last, timed, queue, job::json, sum
FROM unnest(:entries.0::text[], :entries.1::text[], :entries.2::text[], :entries.3::integer[],
    :entries.4::bigint[], :entries.5::bigint[], :entries.6::bigint[], :entries.7::bigint[],
    :entries.8::bigint[], :entries.9::text[], :entries.10::text[], :entries.11::bigint[])
    AS e (name, expression, zone, paused, since, again, next, last, timed, queue, job, sum)
ON CONFLICT (cron, name) DO UPDATE SET expression = excluded.expression,
    timezone = excluded.timezone, paused = excluded.paused, paused_at = excluded.paused_at,
    resumed_at = excluded.resumed_at, queue = excluded.queue, job = excluded.job,
    checksum = excluded.checksum,
    next_at = CASE WHEN cron_entries.name = ANY (:kept::text[])
        THEN cron_entries.next_at ELSE excluded.next_at END,
    timed_at = CASE WHEN cron_entries.name = ANY (:kept::text[])
        THEN cron_entries.timed_at ELSE excluded.timed_at END

-- name: delete_other_crons
DELETE FROM cron_entries WHERE cron = :cron AND name <> ALL (:names::text[])

-- name: delete_crons_of
DELETE FROM cron_entries WHERE cron = ANY (:groups::text[])

-- name: delete_cron_groups
DELETE FROM cron_groups WHERE name = ANY (:groups::text[])

-- name: read_guarded
-- :firings lists [group, entry, expression, zone or null, at]. The index of each valid firing, and its
-- job as text, or null if the entry or its group is paused, with its checksum.
SELECT f.nth - 1, CASE WHEN e.paused = 1 OR g.paused = 1 THEN NULL ELSE e.job::text END, e.checksum
FROM unnest(:firings.0::text[], :firings.1::text[], :firings.2::text[], :firings.3::text[],
    :firings.4::bigint[]) WITH ORDINALITY AS f (cron, name, expression, zone, at, nth)
JOIN cron_entries AS e ON e.cron = ANY (ARRAY[f.cron]) AND e.name = f.name
JOIN cron_groups AS g ON g.name = ANY (ARRAY[f.cron])
WHERE e.next_at IS NOT DISTINCT FROM f.at AND e.expression = f.expression
    AND coalesce(e.timezone, g.timezone) IS NOT DISTINCT FROM f.zone

-- name: move_crons
-- :moves lists [group, entry, next_at or null, last_at or null to keep it].
UPDATE cron_entries SET next_at = m.next, last_at = coalesce(m.last, last_at), timed_at = :now
FROM unnest(:moves.0::text[], :moves.1::text[], :moves.2::bigint[], :moves.3::bigint[])
    AS m (in_group, called, next, last)
WHERE cron_entries.cron = ANY (ARRAY[m.in_group]) AND cron_entries.name = m.called
