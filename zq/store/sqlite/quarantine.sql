-- Unreadable rows: checking them one by one, and reporting those that were set aside.

-- name: latest
SELECT source, key, reason, at FROM quarantine WHERE acknowledged_at IS NULL
ORDER BY at DESC, source, key LIMIT :limit

-- name: count
SELECT count(*) FROM quarantine WHERE acknowledged_at IS NULL

-- name: log
SELECT 1 FROM quarantine WHERE source = 'wal' AND key = :key

-- name: keep
-- Sets aside a row of another database, with the statement that would put it back.
INSERT OR REPLACE INTO quarantine (source, key, reason, row, at)
VALUES (?1, ?2, ?3, CAST(?4 AS BLOB), ?5)

-- name: note
-- Notes damage that is not a row which could be put back.
INSERT OR IGNORE INTO quarantine (source, key, at, reason, row)
VALUES (:source, :key, :at, :reason, x'')

-- name: note_again
-- Notes what was corrected in its place, also if that had to be done before.
INSERT OR REPLACE INTO quarantine (source, key, at, reason, row)
VALUES (:source, :key, :at, :reason, x'')

-- name: job
SELECT json_array({job_columns}) FROM jobs WHERE id = :key

-- name: payload
SELECT body, checksum FROM payloads WHERE job_id = :key

-- name: result
SELECT body, checksum FROM results WHERE job_id = :key

-- name: holder
SELECT holder FROM jobs WHERE id = :key

-- name: group
SELECT queue, group_id FROM jobs WHERE id = :key

-- name: uncount
-- From the raw values of the row: its queue may not be text.
UPDATE queue_counts SET n = n - 1
WHERE n > 0 AND (queue, status) = (SELECT queue, status FROM jobs WHERE id = :key)

-- name: attempts
SELECT attempt FROM errors WHERE job_id = :key

-- name: error
SELECT json_array(attempt, message, error_type, backtrace, dequeued_at, failed_at, signature, worker),
    checksum
FROM errors WHERE job_id = :job_id AND attempt = :attempt

-- name: batch
SELECT last_seq, length(body) + length(shared) FROM log_batches
WHERE log = :log AND last_seq >= :seq AND last_seq - count < :seq ORDER BY last_seq LIMIT 1

-- name: shorten_log
UPDATE logs SET bytes = max(bytes - :bytes, 0) WHERE id = :log

-- name: settings
SELECT json(settings), settings, checksum FROM queue_settings WHERE queue = :queue

-- name: refused
SELECT id FROM jobs
WHERE NOT iif(json_valid(options), json_type(options) = 'object', options IS NULL)
    OR NOT iif(json_valid(extras), json_type(extras) = 'object', extras IS NULL)

-- name: queues
SELECT queue FROM queue_settings

-- name: count_jobs
INSERT INTO queue_counts (queue, status, n)
SELECT queue, status, count(*) FROM jobs GROUP BY queue, status
