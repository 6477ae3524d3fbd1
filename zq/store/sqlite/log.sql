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

-- name: oldest
SELECT last_seq, count, ifnull(steady_at, at), length(body) + length(shared) FROM log_batches
WHERE log = :id ORDER BY last_seq LIMIT :limit

-- name: next
SELECT max(last_seq - count, :after) + 1 FROM log_batches
WHERE log = :id AND last_seq > :after ORDER BY last_seq LIMIT 1

-- name: batches
SELECT last_seq - count + 1, CAST(shared AS BLOB), body, checksum FROM log_batches
WHERE log = :id AND last_seq > :after ORDER BY last_seq
