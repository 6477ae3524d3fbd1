-- Every stored row that has a checksum: its key, its texts as bytes, and the checksum.

-- name: jobs
SELECT id, CAST(type AS BLOB), CAST(payload AS BLOB), CAST(extras AS BLOB),
    CAST(options AS BLOB), checksum
FROM jobs WHERE checksum IS NOT NULL

-- name: ended
SELECT id, CAST(result AS BLOB), result_checksum
FROM jobs WHERE result IS NOT NULL AND result_checksum IS NOT NULL

-- name: payloads
SELECT job_id, CAST(body AS BLOB), checksum FROM payloads WHERE checksum IS NOT NULL

-- name: results
SELECT job_id, CAST(body AS BLOB), checksum FROM results WHERE checksum IS NOT NULL

-- name: errors
SELECT job_id, attempt, CAST(message AS BLOB), CAST(error_type AS BLOB), CAST(backtrace AS BLOB),
    checksum
FROM errors WHERE checksum IS NOT NULL

-- name: log_batches
-- A batch is named by its first record.
SELECT log, last_seq - count + 1, body, CAST(shared AS BLOB), checksum
FROM log_batches WHERE checksum IS NOT NULL

-- name: settings
SELECT queue, CAST(settings AS BLOB), checksum FROM queue_settings WHERE checksum IS NOT NULL
