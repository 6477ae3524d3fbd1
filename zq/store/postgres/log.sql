-- The statements of logs.

-- name: append
-- SOURCE yields one row: how many records there are (n), and a JSON array of them (records). A room has a
-- source of its own: a statement that begins with APPEND.
INSERT INTO log_batches (log, last_seq, count, at, shared, body, steady_at)
SELECT logs.id, logs.max_seq + n, n, :now, :shared::json, records::json,
    nullif(:steady::bigint, :now::bigint)
FROM logs CROSS JOIN (SOURCE) AS source
WHERE logs.name = :log AND n > 0
RETURNING count, (octet_length(body::text) + octet_length(shared::text))::bigint

-- name: extend_log
UPDATE logs SET max_seq = max_seq + :count::bigint, bytes = bytes + :bytes::bigint,
    trim_at = coalesce(trim_at, :steady::bigint + max_age_ms)
WHERE name = :log
RETURNING min_seq, max_seq, coalesce(bytes > max_bytes OR max_seq - min_seq >= max_records, false)

-- name: to_be_trimmed
SELECT name FROM logs WHERE trim_at <= :steady

-- name: oldest
SELECT last_seq, count, coalesce(steady_at, at),
    (octet_length(body::text) + octet_length(shared::text))::bigint
FROM log_batches WHERE log = :id ORDER BY last_seq LIMIT :limit

-- name: next
SELECT greatest(last_seq - count, :after::bigint) + 1 FROM log_batches
WHERE log = :id AND last_seq > :after ORDER BY last_seq LIMIT 1

-- name: batches
SELECT last_seq - count + 1, shared::text, body::text, NULL FROM log_batches
WHERE log = :id AND last_seq > :after AND last_seq - count < :upto ORDER BY last_seq
