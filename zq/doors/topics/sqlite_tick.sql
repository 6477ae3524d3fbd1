-- The statements of topics. A record's key has its topic's id above {seq_bits} bits of its number.

-- name: read_topics
SELECT json_group_array({topic_row}) FROM topics
WHERE name IN (SELECT value FROM json_each(:names))

-- name: topics_to_trim
SELECT json_group_array({topic_row}) FROM topics
WHERE id IN (SELECT id FROM topics WHERE trim_at <= :now ORDER BY trim_at LIMIT :limit)

-- name: count_topics
SELECT count(*) FROM topics

-- name: highest_topic
SELECT ifnull(max(id), 0) FROM topics

-- name: create_topic
-- The records of a topic whose row was set aside keep its id.
INSERT INTO topics (id, name, config)
SELECT 1 + max(
        ifnull((SELECT max(id) FROM topics), 0),
        ifnull((SELECT max(key) FROM topic_records), 0) >> {seq_bits},
        ifnull((SELECT max(key) FROM topic_jobs), 0) >> {seq_bits}),
    :topic, :config
RETURNING id

-- name: free_topic_id
-- The lowest id behind one that is in use, where the highest one is.
SELECT min(id) + 1 FROM topics AS t
WHERE NOT EXISTS (SELECT 1 FROM topics WHERE id = t.id + 1) AND id < {max_topic_id}

-- name: write_topics
-- :topics lists [id, head_seq, count, bytes, cap_floor, ttl_floor, last_at, trim_at,
-- dead_lettered].
UPDATE topics SET head_seq = t.value ->> 1, count = t.value ->> 2, bytes = t.value ->> 3,
    cap_floor = t.value ->> 4, ttl_floor = t.value ->> 5, last_at = t.value ->> 6,
    trim_at = t.value ->> 7, dead_lettered = t.value ->> 8
FROM json_each(:topics) AS t
WHERE topics.id = t.value ->> 0

-- name: oldest_records
SELECT json_group_array(json_array(key & {max_seq}, since, size)) FROM (
    SELECT key, ifnull(steady_at, at) AS since, size FROM topic_records
    WHERE key > :id << {seq_bits} AND key <= :id << {seq_bits} | {max_seq}
    ORDER BY key LIMIT :limit)

-- name: records_before
SELECT count(*), ifnull(sum(size), 0), json_group_array(key) FROM (
    SELECT key, size FROM topic_records
    WHERE key > :id << {seq_bits} AND key <= :id << {seq_bits} | :upto ORDER BY key LIMIT :limit)

-- name: records_tagged
SELECT count(*), ifnull(sum(size), 0), json_group_array(key) FROM (
    SELECT key, size FROM topic_records
    WHERE key >> {seq_bits} = :id AND tag >= :low AND (:high IS NULL OR tag < :high)
        AND key <= :id << {seq_bits} | :upto
    LIMIT :limit)

-- name: delete_records
DELETE FROM topic_records WHERE key IN {keys}

-- name: number_jobs
-- :numbers lists [key, job, node, tag].
INSERT INTO topic_jobs (key, job, node, tag)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:numbers)

-- name: note_expired_numbers
-- The jobs of these keys have been in their topics for too long.
UPDATE topics SET ttl_floor = max(ttl_floor, gone.floor)
FROM (
    SELECT key >> {seq_bits} AS topic, max(key & {max_seq}) + 1 AS floor
    FROM topic_jobs WHERE job IN {keys} GROUP BY 1) AS gone
WHERE topics.id = gone.topic

-- name: read_numbers
SELECT json_group_array(json_array(job, key & {max_seq})) FROM topic_jobs
WHERE job IN {keys} AND key >> {seq_bits} = :id

-- name: forget_numbers
DELETE FROM topic_jobs WHERE job IN {keys}

-- name: forget_ended
-- Those of some jobs that are gone, or have ended and cannot come back.
DELETE FROM topic_jobs
WHERE job IN {keys}
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = job AND status NOT IN ({completed}, {expired}))

-- name: forget_gone
-- Of the lowest numbers behind one, those whose jobs are gone, or have ended and cannot come back:
-- others than workers of the topic have ended them.
DELETE FROM topic_jobs
WHERE key IN (
    SELECT t.key FROM topic_jobs AS t
    WHERE t.key > :id << {seq_bits} | :after AND t.key <= :id << {seq_bits} | {max_seq}
    ORDER BY t.key LIMIT :limit)
AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = job AND status NOT IN ({completed}, {expired}))

-- name: oldest_waiting
-- [number, job] of records that wait in a queue, in the order of their numbers.
SELECT json_group_array(json_array(key & {max_seq}, job)) FROM (
    SELECT t.key, t.job FROM topic_jobs AS t CROSS JOIN jobs ON jobs.id = t.job
    WHERE t.key > :id << {seq_bits} AND t.key <= :id << {seq_bits} | {max_seq}
        AND jobs.queue = :queue AND jobs.status <= {ready}
    ORDER BY t.key LIMIT :limit)

-- name: has_jobs
-- 1 if a queue has unfinished jobs that have numbers.
SELECT EXISTS (
    SELECT 1 FROM topic_jobs AS t CROSS JOIN jobs ON jobs.id = t.job
    WHERE t.key > :id << {seq_bits} AND t.key <= :id << {seq_bits} | {max_seq}
        AND jobs.queue = :queue AND jobs.status <= {in_flight})

-- name: forget_numbers_of
DELETE FROM topic_jobs
WHERE key IN (
    SELECT key FROM topic_jobs
    WHERE key > :id << {seq_bits} AND key <= :id << {seq_bits} | {max_seq} LIMIT :limit)

-- name: read_writes
-- :writes lists [topic, key].
SELECT json_group_array(json_array(topic, topic_writes.key, first_seq, last_seq))
FROM json_each(:writes) AS w
CROSS JOIN topic_writes ON topic = w.value ->> 0 AND topic_writes.key = w.value ->> 1
WHERE until > :now

-- name: note_writes
-- :writes lists [topic, key, first_seq, last_seq, until].
INSERT OR REPLACE INTO topic_writes (topic, key, first_seq, last_seq, until)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(:writes)

-- name: forget_writes
DELETE FROM topic_writes
WHERE id IN (
    SELECT id FROM topic_writes WHERE until <= :now ORDER BY until LIMIT :limit)

-- name: forget_writes_of
DELETE FROM topic_writes
WHERE id IN (SELECT id FROM topic_writes WHERE topic = :id LIMIT :limit)
