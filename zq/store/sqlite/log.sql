-- The statements of logs, and those of the history of jobs.

-- name: append
-- SOURCE yields one row: how many records there are (n), and a JSON array of them (records).
INSERT INTO log_batches (log, last_seq, count, at, shared, body, steady_at)
SELECT logs.id, logs.max_seq + n, n, :now, :shared, CAST(records AS BLOB), nullif(:steady, :now)
FROM logs CROSS JOIN (SOURCE)
WHERE logs.name = :log AND n > 0
RETURNING count, length(body) + length(shared)

-- name: extend_log
UPDATE logs SET max_seq = max_seq + :count, bytes = bytes + :bytes,
    trim_at = ifnull(trim_at, :steady + max_age_ms)
WHERE name = :log
RETURNING min_seq, max_seq, bytes > max_bytes OR max_seq - min_seq >= max_records

-- name: attempts
-- The history's facts about jobs whose attempt ends, in the form of
-- `zq.features.history.model.StoredAttempt`.
SELECT count(*) AS n, json_group_array(json_array({attempt_columns})) AS records
FROM (SELECT value AS key FROM json_each(:keys)) CROSS JOIN jobs ON jobs.id = key

-- name: failures
-- The same, with the fields that differ between failures. :failures lists [key, outcome, error_type,
-- message]. They stay JSON, since as SQL text they would end at a NUL.
SELECT count(*) AS n, json_group_array(json_array({attempt_columns},
    failure -> 1, failure -> 2, failure -> 3)) AS records
FROM (SELECT value AS failure FROM json_each(:failures)) CROSS JOIN jobs ON jobs.id = failure ->> 0

-- name: actions
-- :actions lists the records of the audit.
SELECT json_array_length(:actions) AS n, :actions AS records

-- name: to_be_trimmed
SELECT json_group_array(name) FROM logs WHERE trim_at <= :steady

-- name: extent
SELECT id, min_seq, max_seq, bytes, max_age_ms, max_records, max_bytes FROM logs WHERE name = :log

-- name: oldest
SELECT last_seq, count, ifnull(steady_at, at), length(body) + length(shared) FROM log_batches
WHERE log = :id ORDER BY last_seq LIMIT :limit

-- name: trim
DELETE FROM log_batches WHERE log = :id AND last_seq <= :upto

-- name: note_trim
UPDATE logs SET min_seq = :upto + 1, bytes = bytes - :bytes,
    trim_at = max_age_ms + (
        SELECT ifnull(steady_at, at) FROM log_batches WHERE log = logs.id AND last_seq > :upto ORDER BY last_seq LIMIT 1)
WHERE id = :id

-- name: set_bounds
UPDATE logs SET max_age_ms = :age_ms, max_records = :records, max_bytes = :bytes,
    trim_at = :age_ms + (
        SELECT ifnull(steady_at, at) FROM log_batches WHERE log = logs.id ORDER BY last_seq LIMIT 1)
WHERE name = :log

-- name: next
SELECT max(last_seq - count, :after) + 1 FROM log_batches
WHERE log = :id AND last_seq > :after ORDER BY last_seq LIMIT 1

-- name: batches
SELECT last_seq - count + 1, CAST(shared AS BLOB), body FROM log_batches
WHERE log = :id AND last_seq > :after ORDER BY last_seq
