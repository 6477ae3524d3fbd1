-- The statements of logs.

-- name: append
-- SOURCE yields one row: how many records there are (n), and a JSON array of them (records). A room has a
-- source of its own: a statement that begins with APPEND.
INSERT INTO log_batches (log, last_seq, count, at, shared, body, steady_at, checksum)
SELECT logs.id, logs.max_seq + n, n, :now, :shared, CAST(records AS BLOB), nullif(:steady, :now),
    record_checksum(CAST(records AS BLOB), :shared)
FROM logs CROSS JOIN (SOURCE)
WHERE logs.name = :log AND n > 0
RETURNING count, length(body) + length(shared)

-- name: extend_log
UPDATE logs SET max_seq = max_seq + :count, bytes = bytes + :bytes,
    trim_at = ifnull(trim_at, :steady + max_age_ms)
WHERE name = :log
RETURNING min_seq, max_seq, bytes > max_bytes OR max_seq - min_seq >= max_records

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
SELECT last_seq - count + 1, CAST(shared AS BLOB), body, checksum FROM log_batches
WHERE log = :id AND last_seq > :after ORDER BY last_seq
