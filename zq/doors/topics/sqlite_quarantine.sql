-- Records that cannot be read.

-- name: record
SELECT CAST(data AS BLOB), CAST(meta AS BLOB), checksum FROM topic_records WHERE key = :key

-- name: shorten_topic
UPDATE topics SET count = max(count - 1, 0), bytes = max(bytes - (
    SELECT size FROM topic_records WHERE key = :key), 0)
WHERE id = :key >> {seq_bits}

-- name: miscounted
-- Topics whose numbers cannot be.
SELECT id FROM topics
WHERE NOT (head_seq BETWEEN 0 AND {max_seq} AND count >= 0 AND bytes >= 0 AND dead_lettered >= 0)

-- name: count_topic
UPDATE topics SET
    head_seq = max(
        iif(head_seq BETWEEN 0 AND {max_seq}, head_seq, 0),
        ifnull((SELECT max(key) FROM topic_records WHERE key >> {seq_bits} = :id), 0) & {max_seq},
        ifnull((SELECT max(key) FROM topic_jobs WHERE key >> {seq_bits} = :id), 0) & {max_seq}),
    count = (SELECT count(*) FROM topic_records WHERE key >> {seq_bits} = :id),
    bytes = (SELECT ifnull(sum(size), 0) FROM topic_records WHERE key >> {seq_bits} = :id),
    dead_lettered = max(dead_lettered, 0)
WHERE id = :id

-- name: topic_records
SELECT key, CAST(data AS BLOB), CAST(meta AS BLOB), checksum FROM topic_records
WHERE checksum IS NOT NULL
