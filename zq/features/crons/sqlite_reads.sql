-- The readers' queries about cron.

-- name: group_names
SELECT json_group_array(name) FROM (SELECT name FROM cron_groups ORDER BY name)

-- name: entries
SELECT name, expression, timezone, paused, paused_at, resumed_at, next_at, last_at, timed_at, job,
    checksum
FROM cron_entries WHERE cron = :cron ORDER BY name

-- name: entry
SELECT name, expression, timezone, paused, paused_at, resumed_at, next_at, last_at, timed_at, job,
    checksum
FROM cron_entries WHERE cron = :cron AND name = :entry

-- name: size
SELECT total(length(job)) FROM cron_entries WHERE cron = :cron

-- name: queues
-- The queues of each group's jobs; null for a group without entries.
SELECT json_group_array(json_array(name, queue)) FROM (
    SELECT DISTINCT g.name, e.queue FROM cron_groups AS g
    LEFT JOIN cron_entries AS e ON e.cron = g.name
    WHERE :cron IS NULL OR g.name = :cron ORDER BY g.name)

-- name: tally
SELECT json_group_array(queue) FROM cron_entries

-- name: due
SELECT json_group_array(
    json_array(cron, name, expression, zone, next_at, timed_at, size, batched)) FROM (
    SELECT e.cron, e.name, expression, ifnull(e.timezone, g.timezone) AS zone, next_at, timed_at,
        length(job) AS size, job ->> '$.extras.batch.key' IS NOT NULL AS batched
    FROM cron_entries AS e JOIN cron_groups AS g ON g.name = e.cron
    WHERE next_at IS NOT NULL AND next_at <= :now ORDER BY next_at LIMIT :limit)

-- name: timed_ahead
-- Entries whose next time was computed after :now: the clock has been set back since.
SELECT json_group_array(json_array(cron, name, expression, zone, next_at, timed_at, size)) FROM (
    SELECT e.cron, e.name, expression, ifnull(e.timezone, g.timezone) AS zone, next_at, timed_at,
        length(job) AS size
    FROM cron_entries AS e JOIN cron_groups AS g ON g.name = e.cron
    WHERE (e.cron, e.name) > (:cron, :entry) AND next_at IS NOT NULL AND timed_at > :now
    ORDER BY e.cron, e.name LIMIT :limit)

-- name: schedules
SELECT json_group_array(json_array(cron, name, expression, zone, next_at)) FROM (
    SELECT e.cron, e.name, expression, ifnull(e.timezone, g.timezone) AS zone, next_at
    FROM cron_entries AS e JOIN cron_groups AS g ON g.name = e.cron
    WHERE (e.cron, e.name) > (:cron, :entry) ORDER BY e.cron, e.name LIMIT :limit)
