-- The readers' queries about cron. PostgreSQL checks its pages itself: rows have no checksum.

-- name: group_names
SELECT name FROM cron_groups ORDER BY name

-- name: entries
SELECT name, expression, timezone, paused, paused_at, resumed_at, next_at, last_at, timed_at, job::text,
    NULL
FROM cron_entries WHERE cron = :cron ORDER BY name

-- name: entry
SELECT name, expression, timezone, paused, paused_at, resumed_at, next_at, last_at, timed_at, job::text,
    NULL
FROM cron_entries WHERE cron = :cron AND name = :entry

-- name: size
SELECT coalesce(sum(octet_length(job::text)), 0)::bigint FROM cron_entries WHERE cron = :cron

-- name: queues
-- The queues of each group's jobs; null for a group without entries.
SELECT DISTINCT g.name, e.queue FROM cron_groups AS g
LEFT JOIN cron_entries AS e ON e.cron = ANY (ARRAY[g.name])
WHERE :cron::text IS NULL OR g.name = :cron::text ORDER BY g.name

-- name: tally
SELECT queue FROM cron_entries

-- name: due
SELECT e.cron, e.name, expression, coalesce(e.timezone, g.timezone), next_at, timed_at,
    octet_length(job::text), (job -> 'extras' -> 'batch' ->> 'key' IS NOT NULL)::integer
FROM cron_entries AS e JOIN cron_groups AS g ON g.name = ANY (ARRAY[e.cron])
WHERE next_at IS NOT NULL AND next_at <= :now ORDER BY next_at LIMIT :limit

-- name: timed_ahead
-- Entries whose next time was computed after :now: the clock has been set back since.
SELECT e.cron, e.name, expression, coalesce(e.timezone, g.timezone), next_at, timed_at,
    octet_length(job::text)
FROM cron_entries AS e JOIN cron_groups AS g ON g.name = ANY (ARRAY[e.cron])
WHERE (e.cron, e.name) > (:cron::text, :entry::text) AND next_at IS NOT NULL AND timed_at > :now
ORDER BY e.cron, e.name LIMIT :limit

-- name: schedules
SELECT e.cron, e.name, expression, coalesce(e.timezone, g.timezone), next_at
FROM cron_entries AS e JOIN cron_groups AS g ON g.name = ANY (ARRAY[e.cron])
WHERE (e.cron, e.name) > (:cron::text, :entry::text) ORDER BY e.cron, e.name LIMIT :limit
