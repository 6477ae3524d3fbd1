-- What readers of topics look up.

-- name: topic
SELECT {topic_row} FROM topics WHERE name = :name

-- name: count_topics
SELECT count(*) FROM topics WHERE name IS NOT NULL

-- name: topics_page
SELECT {topic_row} FROM topics
WHERE name > :after AND name >= :low AND (:high IS NULL OR name < :high) ORDER BY name LIMIT :limit

-- name: record_from
-- The first record from a number on: its number, and the time from which its age counts.
SELECT key & {max_seq}, ifnull(steady_at, at) FROM topic_records
WHERE key >= :id << {seq_bits} | :seq AND key <= :id << {seq_bits} | {max_seq} ORDER BY key LIMIT 1

-- name: examined
-- The last record that one look at a topic examines, where there are more than these.
SELECT key & {max_seq} FROM topic_records
WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto
ORDER BY key LIMIT 1 OFFSET :most - 1

-- name: extent
-- How many records a page could have, their bytes, and the last of them.
SELECT count(*), ifnull(sum(size), 0), max(key) & {max_seq} FROM (
    SELECT key, size FROM topic_records
    WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto AND OTHERS
    ORDER BY key LIMIT :limit)

-- name: fitting
-- The last record of those that fit into so many bytes, one at least.
SELECT max(key) & {max_seq} FROM (
    SELECT key, sum(size) OVER (ORDER BY key) - size AS before FROM (
        SELECT key, size FROM topic_records
        WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto AND OTHERS
        ORDER BY key LIMIT :limit))
WHERE before < :bytes

-- name: records
SELECT group_concat('[' || (key & {max_seq}) || ',' || at || ',' || json_quote(node) || ','
    || json_quote(tag) || ',' || ifnull(checksum, 'null') || ',' || data || ifnull(',' || meta, '')
    || ']')
FROM (
    SELECT * FROM topic_records
    WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto AND OTHERS
    ORDER BY key)

-- name: texts
-- The texts of the records of a page, one by one.
SELECT key, CAST(data AS BLOB), CAST(meta AS BLOB), checksum FROM topic_records
WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto AND OTHERS

-- name: others
-- Those that none of these nodes has written.
(node IS NULL OR node NOT IN (SELECT value FROM json_each(:nodes)))
