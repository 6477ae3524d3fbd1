-- The statements of topics that every tick may need. This door has no others on PostgreSQL yet.

-- name: note_expired_numbers
-- The jobs of these keys have been in their topics for too long.
UPDATE topics SET ttl_floor = greatest(ttl_floor, gone.floor)
FROM (
    SELECT key >> {seq_bits} AS topic, max(key & {max_seq}) + 1 AS floor
    FROM topic_jobs WHERE job = {keys} GROUP BY 1) AS gone
WHERE topics.id = gone.topic

-- name: clear_topics
DELETE FROM topics

-- name: clear_topic_records
DELETE FROM topic_records

-- name: clear_topic_jobs
DELETE FROM topic_jobs

-- name: clear_topic_writes
DELETE FROM topic_writes

-- name: clear_topic_routers
DELETE FROM topic_routers
