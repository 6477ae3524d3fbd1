-- The statements of topics. A record's key has its topic's id above {seq_bits} bits of its number.

-- name: read_topics
SELECT {topic_columns} FROM topics WHERE name = ANY (:names::text[])

-- name: topics_to_trim
SELECT {topic_columns} FROM topics
WHERE id = ANY (ARRAY(SELECT id FROM topics WHERE trim_at <= :now ORDER BY trim_at LIMIT :limit))

-- name: count_topics
SELECT count(*) FROM (SELECT 1 FROM topics ORDER BY id) AS topics

-- name: highest_topic
SELECT coalesce((SELECT id FROM topics ORDER BY id DESC LIMIT 1), 0)

-- name: create_topic
INSERT INTO topics (id, name, config)
SELECT coalesce((SELECT id FROM topics ORDER BY id DESC LIMIT 1), 0) + 1,
    :topic::text, :config::json
RETURNING id

-- name: free_topic_id
-- The lowest id behind one that is in use, where the highest one is.
SELECT min(id) + 1 FROM topics AS t
WHERE NOT EXISTS (SELECT 1 FROM topics WHERE id = t.id + 1 OFFSET 0) AND id < {max_topic_id}

-- name: write_topics
-- :topics lists [id, head_seq, count, bytes, cap_floor, ttl_floor, last_at, trim_at,
-- dead_lettered].
UPDATE topics SET head_seq = t.head_seq, count = t.count, bytes = t.bytes,
    cap_floor = t.cap_floor, ttl_floor = t.ttl_floor, last_at = t.last_at,
    trim_at = t.trim_at, dead_lettered = t.dead_lettered
FROM unnest(:topics.0::bigint[], :topics.1::bigint[], :topics.2::bigint[], :topics.3::bigint[],
        :topics.4::bigint[], :topics.5::bigint[], :topics.6::bigint[], :topics.7::bigint[],
        :topics.8::bigint[])
    AS t (id, head_seq, count, bytes, cap_floor, ttl_floor, last_at, trim_at, dead_lettered)
WHERE topics.id = ANY (ARRAY[t.id])

-- name: oldest_records
SELECT key & {max_seq}, coalesce(steady_at, at), size FROM topic_records
WHERE key > :id::bigint << {seq_bits} AND key <= :id::bigint << {seq_bits} | {max_seq}
ORDER BY key LIMIT :limit

-- name: records_before
SELECT count(*), coalesce(sum(size), 0)::bigint, coalesce(array_agg(key), '{{}}') FROM (
    SELECT key, size FROM topic_records
    WHERE key > :id::bigint << {seq_bits} AND key <= :id::bigint << {seq_bits} | :upto::bigint
    ORDER BY key LIMIT :limit) AS few

-- name: records_tagged
SELECT count(*), coalesce(sum(size), 0)::bigint, coalesce(array_agg(key), '{{}}') FROM (
    SELECT key, size FROM topic_records
    WHERE key >> {seq_bits} = :id AND tag >= :low AND (:high::text IS NULL OR tag < :high::text)
        AND key <= :id::bigint << {seq_bits} | :upto::bigint
    LIMIT :limit) AS few

-- name: delete_records
DELETE FROM topic_records WHERE key = {keys}

-- name: number_jobs
-- :numbers lists [key, job, node, tag].
INSERT INTO topic_jobs (key, job, node, tag)
SELECT * FROM unnest(
    :numbers.0::bigint[], :numbers.1::bigint[], :numbers.2::text[], :numbers.3::text[])

-- name: note_expired_numbers
-- The jobs of these keys have been in their topics for too long.
UPDATE topics SET ttl_floor = greatest(ttl_floor, gone.floor)
FROM (
    SELECT key >> {seq_bits} AS topic, max(key & {max_seq}) + 1 AS floor
    FROM topic_jobs WHERE job = {keys} GROUP BY 1) AS gone
WHERE topics.id = ANY (ARRAY[gone.topic])

-- name: read_numbers
SELECT job, key & {max_seq} FROM topic_jobs WHERE job = {keys} AND key >> {seq_bits} = :id

-- name: forget_numbers
DELETE FROM topic_jobs WHERE job = {keys}

-- name: forget_ended
-- Those of some jobs that are gone, or have ended and cannot come back.
DELETE FROM topic_jobs
WHERE job = {keys}
    AND NOT EXISTS (
        SELECT 1 FROM jobs WHERE id = job AND +status NOT IN ({completed}, {expired}) OFFSET 0)

-- name: forget_gone
-- Of the lowest numbers behind one, those whose jobs are gone, or have ended and cannot come back:
-- others than workers of the topic have ended them.
DELETE FROM topic_jobs
WHERE key = ANY (ARRAY(
    SELECT t.key FROM topic_jobs AS t
    WHERE t.key > :id::bigint << {seq_bits} | :after::bigint
        AND t.key <= :id::bigint << {seq_bits} | {max_seq}
    ORDER BY t.key LIMIT :limit))
AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE id = job AND +status NOT IN ({completed}, {expired}) OFFSET 0)

-- name: oldest_waiting
-- [number, job] of records that wait in a queue, in the order of their numbers.
SELECT t.key & {max_seq}, t.job FROM topic_jobs AS t JOIN jobs ON jobs.id = ANY (ARRAY[t.job])
WHERE t.key > :id::bigint << {seq_bits} AND t.key <= :id::bigint << {seq_bits} | {max_seq}
    AND jobs.queue = :queue AND jobs.status <= {ready}
ORDER BY t.key LIMIT :limit

-- name: has_jobs
-- 1 if a queue has unfinished jobs that have numbers.
SELECT EXISTS (
    SELECT 1 FROM topic_jobs AS t JOIN jobs ON jobs.id = ANY (ARRAY[t.job])
    WHERE t.key > :id::bigint << {seq_bits} AND t.key <= :id::bigint << {seq_bits} | {max_seq}
        AND jobs.queue = :queue AND jobs.status <= {in_flight})::integer

-- name: forget_numbers_of
DELETE FROM topic_jobs
WHERE key = ANY (ARRAY(
    SELECT key FROM topic_jobs
    WHERE key > :id::bigint << {seq_bits} AND key <= :id::bigint << {seq_bits} | {max_seq}
    ORDER BY key LIMIT :limit))

-- name: read_writes
-- :writes lists [topic, key].
SELECT topic_writes.topic, topic_writes.key, first_seq, last_seq
FROM unnest(:writes.0::bigint[], :writes.1::text[]) AS w (topic, key)
JOIN topic_writes ON topic_writes.topic = ANY (ARRAY[w.topic]) AND topic_writes.key = w.key
WHERE +until > :now

-- name: note_writes
-- :writes lists [topic, key, first_seq, last_seq, until].
INSERT INTO topic_writes (topic, key, first_seq, last_seq, until)
SELECT DISTINCT ON (topic, key) * FROM unnest(
    :writes.0::bigint[], :writes.1::text[], :writes.2::bigint[], :writes.3::bigint[],
    :writes.4::bigint[]) AS w (topic, key, first_seq, last_seq, until)
ORDER BY topic, key, last_seq DESC
ON CONFLICT (topic, key) DO UPDATE
SET first_seq = excluded.first_seq, last_seq = excluded.last_seq, until = excluded.until

-- name: forget_writes
DELETE FROM topic_writes
WHERE id = ANY (ARRAY(SELECT id FROM topic_writes WHERE until <= :now ORDER BY until LIMIT :limit))

-- name: forget_writes_of
DELETE FROM topic_writes
WHERE id = ANY (ARRAY(
    SELECT id FROM topic_writes WHERE topic = :id ORDER BY topic, key LIMIT :limit))

-- name: clear_topic_routers
DELETE FROM topic_routers
