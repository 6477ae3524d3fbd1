-- Records that cannot be read.

-- name: record
SELECT CAST(data AS BLOB), CAST(meta AS BLOB), checksum FROM topic_records WHERE key = :key

-- name: shorten_topic
UPDATE topics SET count = max(count - 1, 0), bytes = max(bytes - (
    SELECT size FROM topic_records WHERE key = :key), 0)
WHERE id = :key >> {seq_bits}

-- name: topic_records
SELECT key, CAST(data AS BLOB), CAST(meta AS BLOB), checksum FROM topic_records
WHERE checksum IS NOT NULL
