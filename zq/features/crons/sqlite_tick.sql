-- Cron: the statements by which the tick writes entries and moves them on.

-- name: write_crons
-- :entries lists [name, expression, timezone, paused, paused_at, resumed_at, next_at, last_at,
-- timed_at, queue, job, checksum]. Existing entries keep their last_at; the :kept ones also their next_at.
INSERT INTO cron_entries (cron, name, expression, timezone, paused, paused_at, resumed_at, next_at,
    last_at, timed_at, queue, job, checksum)
SELECT :cron, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10,
    value ->> 11
FROM json_each(:entries) WHERE true
ON CONFLICT (cron, name) DO UPDATE SET expression = excluded.expression,
    timezone = excluded.timezone, paused = excluded.paused, paused_at = excluded.paused_at,
    resumed_at = excluded.resumed_at, queue = excluded.queue, job = excluded.job,
    checksum = excluded.checksum,
    next_at = iif(name IN (SELECT value FROM json_each(:kept)), next_at, excluded.next_at),
    timed_at = iif(name IN (SELECT value FROM json_each(:kept)), timed_at, excluded.timed_at)

-- name: delete_other_crons
DELETE FROM cron_entries
WHERE cron = :cron AND name NOT IN (SELECT value FROM json_each(:names))

-- name: delete_crons_of
DELETE FROM cron_entries WHERE cron IN (SELECT value FROM json_each(:groups))

-- name: delete_cron_groups
DELETE FROM cron_groups WHERE name IN (SELECT value FROM json_each(:groups))

-- name: read_guarded
-- :firings lists [group, entry, expression, zone or null, at]. The index of each valid firing, and its
-- job as text, or null if the entry or its group is paused, with its checksum.
SELECT json_group_array(json_array(f.key, iif(e.paused OR g.paused, NULL, e.job), e.checksum))
FROM json_each(:firings) AS f
CROSS JOIN cron_entries AS e ON e.cron = f.value ->> 0 AND e.name = f.value ->> 1
CROSS JOIN cron_groups AS g ON g.name = e.cron
WHERE e.next_at IS (f.value ->> 4) AND e.expression = f.value ->> 2
    AND ifnull(e.timezone, g.timezone) IS (f.value ->> 3)

-- name: move_crons
-- :moves lists [group, entry, next_at or null, last_at or null to keep it].
UPDATE cron_entries SET next_at = m.value ->> 2, last_at = ifnull(m.value ->> 3, last_at),
    timed_at = :now
FROM json_each(:moves) AS m
WHERE cron_entries.cron = m.value ->> 0 AND cron_entries.name = m.value ->> 1
