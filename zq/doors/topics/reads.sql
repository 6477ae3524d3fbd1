-- Statements that read alike in both stores.

-- name: topic
SELECT {topic_row} FROM topics WHERE name = :name

-- name: count_topics
SELECT count(*) FROM topics WHERE name IS NOT NULL

-- name: topics_page
SELECT {topic_row} FROM topics
WHERE name > :after AND name >= :low AND (:high::text IS NULL OR name < :high::text)
ORDER BY name LIMIT :limit

-- name: record_from
-- The first record from a number on: its number, and the time from which its age counts.
SELECT key & {max_seq}, coalesce(steady_at, at) FROM topic_records
WHERE key >= :id::bigint << {seq_bits} | :seq::bigint
    AND key <= :id::bigint << {seq_bits} | {max_seq}
ORDER BY key LIMIT 1

-- name: examined
-- The last record that one look at a topic examines, where there are more than these.
SELECT key & {max_seq} FROM topic_records
WHERE key > :id::bigint << {seq_bits} | :after::bigint
    AND key <= :id::bigint << {seq_bits} | :upto::bigint
ORDER BY key LIMIT 1 OFFSET :most::bigint - 1

-- name: fitting
-- The last record of those that fit into so many bytes, one at least.
SELECT max(key) & {max_seq} FROM (
    SELECT key, sum(size) OVER (ORDER BY key) - size AS before FROM (
        SELECT key, size FROM topic_records
        WHERE key > :id::bigint << {seq_bits} | :after::bigint
            AND key <= :id::bigint << {seq_bits} | :upto::bigint AND OTHERS
        ORDER BY key LIMIT :limit) AS few) AS summed
WHERE before < :bytes

-- name: jobs_examined
-- The last number that one look at a queue examines, where there are more than these.
SELECT key & {max_seq} FROM topic_jobs
WHERE key > :id::bigint << {seq_bits} | :after::bigint
    AND key <= :id::bigint << {seq_bits} | :upto::bigint
ORDER BY key LIMIT 1 OFFSET :most::bigint - 1
