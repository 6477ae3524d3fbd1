-- Statements that read alike in both stores.

-- name: extent
SELECT id, min_seq, max_seq, bytes, max_age_ms, max_records, max_bytes FROM logs WHERE name = :log

-- name: trim
DELETE FROM log_batches WHERE log = :id AND last_seq <= :upto

-- name: note_trim
UPDATE logs SET min_seq = :upto::bigint + 1, bytes = bytes - :bytes::bigint,
    trim_at = max_age_ms + (
        SELECT coalesce(steady_at, at) FROM log_batches WHERE log = logs.id AND last_seq > :upto
        ORDER BY last_seq LIMIT 1)
WHERE id = :id

-- name: set_bounds
UPDATE logs SET max_age_ms = :age_ms, max_records = :records, max_bytes = :bytes,
    trim_at = :age_ms::bigint + (
        SELECT coalesce(steady_at, at) FROM log_batches WHERE log = logs.id
        ORDER BY last_seq LIMIT 1)
WHERE name = :log
