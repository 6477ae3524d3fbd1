-- What readers of topics look up.

-- name: extent
-- How many records a page could have, their bytes, and the last of them.
SELECT count(*), coalesce(sum(size), 0)::bigint, max(key) & {max_seq} FROM (
    SELECT key, size FROM topic_records
    WHERE key > :id::bigint << {seq_bits} | :after::bigint
        AND key <= :id::bigint << {seq_bits} | :upto::bigint AND OTHERS
    ORDER BY key LIMIT :limit) AS few

-- name: records
SELECT key & {max_seq}, at, node, tag, checksum, data, meta FROM topic_records
WHERE key > :id::bigint << {seq_bits} | :after::bigint
    AND key <= :id::bigint << {seq_bits} | :upto::bigint AND OTHERS
ORDER BY key

-- name: others
-- Those that none of these nodes has written.
(node IS NULL OR NOT node = ANY (:nodes::text[]))

-- Queue topics have unfinished jobs as their records.

-- name: standing
-- All unfinished jobs, those that are ready, and those in flight.
SELECT coalesce(sum(n) FILTER (WHERE status <= {in_flight}), 0)::bigint,
    coalesce(sum(n) FILTER (WHERE status = {ready}), 0)::bigint,
    coalesce(sum(n) FILTER (WHERE status = {in_flight}), 0)::bigint
FROM queue_totals WHERE queue = :queue

-- name: first_job
SELECT t.key & {max_seq} FROM (
    SELECT key, job FROM topic_jobs
    WHERE key > :id::bigint << {seq_bits} | :after::bigint
        AND key <= :id::bigint << {seq_bits} | :upto::bigint
    ORDER BY key LIMIT :most) AS t
JOIN jobs ON jobs.id = ANY (ARRAY[t.job])
WHERE jobs.queue = :queue AND jobs.status <= {in_flight}
ORDER BY t.key LIMIT 1

-- name: jobs_page
-- Up to the first record with which the page is larger than so many bytes.
SELECT seq, at, node, tag, id, type, extras::text, options::text, checksum, payload, body, stored
FROM (
    SELECT t.key, t.key & {max_seq} AS seq, (jobs.id >> {key_bits}) + {key_epoch} AS at, t.node,
        t.tag, jobs.id, jobs.type, jobs.extras, jobs.options, jobs.checksum, jobs.payload,
        payloads.body, payloads.checksum AS stored,
        sum(jobs.payload_size) OVER (ORDER BY t.key) - jobs.payload_size AS before
    FROM (
        SELECT * FROM topic_jobs
        WHERE key > :id::bigint << {seq_bits} | :after::bigint
            AND key <= :id::bigint << {seq_bits} | :upto::bigint
        ORDER BY key LIMIT :most) AS t
    JOIN jobs ON jobs.id = ANY (ARRAY[t.job])
    LEFT JOIN payloads ON jobs.payload IS NULL AND job_id = ANY (ARRAY[jobs.id])
    WHERE jobs.queue = :queue AND jobs.status <= {in_flight} AND OTHERS
    ORDER BY t.key LIMIT :limit) AS page
WHERE before <= :bytes ORDER BY key

-- name: jobs_others
(t.node IS NULL OR NOT t.node = ANY (:nodes::text[]))

-- name: held
SELECT t.key & {max_seq}, jobs.id, jobs.deliveries
FROM unnest(:seqs::bigint[]) AS wanted (seq)
JOIN topic_jobs AS t ON t.key = ANY (ARRAY[:id::bigint << {seq_bits} | wanted.seq])
JOIN jobs ON jobs.id = ANY (ARRAY[t.job])
WHERE wanted.seq BETWEEN 1 AND {max_seq} AND jobs.queue = :queue
    AND +jobs.status = {in_flight} AND jobs.claimant = :node

-- name: labels
SELECT job, key & {max_seq}, node, tag FROM topic_jobs
WHERE job = {keys} AND key >> {seq_bits} = :id

-- name: numbered
SELECT t.job FROM topic_jobs AS t JOIN jobs ON jobs.id = ANY (ARRAY[t.job])
WHERE t.key > :id::bigint << {seq_bits} AND t.key <= :id::bigint << {seq_bits} | :upto::bigint
    AND jobs.queue = :queue AND jobs.status <= {in_flight}
ORDER BY t.key LIMIT :limit

-- name: tagged
SELECT t.job FROM topic_jobs AS t JOIN jobs ON jobs.id = ANY (ARRAY[t.job])
WHERE t.key >> {seq_bits} = :id AND t.tag >= :low AND (:high::text IS NULL OR t.tag < :high::text)
    AND t.key <= :id::bigint << {seq_bits} | :upto::bigint
    AND jobs.queue = :queue AND jobs.status <= {in_flight}
LIMIT :limit

-- name: router
SELECT name, config::text, forwarded FROM topic_routers WHERE name = :name

-- name: count_routers
SELECT count(*) FROM (SELECT 1 FROM topic_routers ORDER BY name) AS routers

-- name: routers_page
SELECT name, config::text, forwarded FROM topic_routers
WHERE name > :after AND name >= :low AND (:high::text IS NULL OR name < :high::text)
    AND (:source::text IS NULL OR source = :source::text)
    AND (:dest::text IS NULL OR dest = :dest::text)
ORDER BY name LIMIT :limit
