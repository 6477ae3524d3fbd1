-- Statements that read alike in both stores.

-- name: create_topic_at
INSERT INTO topics (id, name, config) VALUES (:id, :topic, :config::json) RETURNING id

-- name: configure_topic
UPDATE topics SET config = :config::json WHERE id = :id

-- name: drop_topic
UPDATE topics SET name = NULL, trim_at = 0 WHERE id = :id

-- name: forget_topic
DELETE FROM topics WHERE id = :id

-- name: trim_records
DELETE FROM topic_records
WHERE key > :id::bigint << {seq_bits} AND key <= :id::bigint << {seq_bits} | :upto::bigint

-- name: first_record
SELECT key & {max_seq} FROM topic_records
WHERE key > :id::bigint << {seq_bits} AND key <= :id::bigint << {seq_bits} | {max_seq}
ORDER BY key LIMIT 1

-- name: clear_topics
DELETE FROM topics

-- name: clear_topic_records
DELETE FROM topic_records

-- name: clear_topic_jobs
DELETE FROM topic_jobs

-- name: clear_topic_writes
DELETE FROM topic_writes
