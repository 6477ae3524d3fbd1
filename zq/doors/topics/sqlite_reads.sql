-- What readers of topics look up.

-- name: extent
-- How many records a page could have, their bytes, and the last of them.
SELECT count(*), ifnull(sum(size), 0), max(key) & {max_seq} FROM (
    SELECT key, size FROM topic_records
    WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto AND OTHERS
    ORDER BY key LIMIT :limit)

-- name: records
-- The texts are bytes: who edits a file by hand may leave what is no text.
SELECT key & {max_seq}, at, node, tag, checksum, CAST(data AS BLOB), CAST(meta AS BLOB)
FROM topic_records
WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto AND OTHERS
ORDER BY key

-- name: others
-- Those that none of these nodes has written.
(node IS NULL OR node NOT IN (SELECT value FROM json_each(:nodes)))

-- Queue topics have unfinished jobs as their records.

-- name: standing
-- All unfinished jobs, those that are ready, and those in flight.
SELECT ifnull(sum(n) FILTER (WHERE status <= {in_flight}), 0),
    ifnull(sum(n) FILTER (WHERE status = {ready}), 0),
    ifnull(sum(n) FILTER (WHERE status = {in_flight}), 0)
FROM queue_counts WHERE queue = :queue

-- name: first_job
SELECT t.key & {max_seq} FROM (
    SELECT key, job FROM topic_jobs
    WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto
    ORDER BY key LIMIT :most) AS t
CROSS JOIN jobs ON jobs.id = t.job
WHERE jobs.queue = :queue AND jobs.status <= {in_flight}
LIMIT 1

-- name: jobs_page
-- The cross join keeps the order of its first part. To sort them would mean to read all of them.
SELECT t.key & {max_seq}, (jobs.id >> {key_bits}) + {key_epoch}, t.node, t.tag,
    jobs.id, jobs.type, jobs.extras, jobs.options, jobs.checksum, jobs.payload, payloads.body,
    payloads.checksum
FROM (
    SELECT * FROM topic_jobs
    WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto
    ORDER BY key LIMIT :most) AS t
CROSS JOIN jobs ON jobs.id = t.job LEFT JOIN payloads ON jobs.payload IS NULL AND job_id = jobs.id
WHERE jobs.queue = :queue AND jobs.status <= {in_flight} AND OTHERS
LIMIT :limit

-- name: jobs_others
(t.node IS NULL OR t.node NOT IN (SELECT value FROM json_each(:nodes)))

-- name: held
SELECT t.key & {max_seq}, jobs.id, jobs.deliveries
FROM topic_jobs AS t CROSS JOIN jobs ON jobs.id = t.job
WHERE t.key IN (
    SELECT :id << {seq_bits} | value FROM json_each(:seqs) WHERE value BETWEEN 1 AND {max_seq})
    AND jobs.queue = :queue AND jobs.status = {in_flight} AND jobs.claimant = :node

-- name: labels
SELECT job, key & {max_seq}, node, tag FROM topic_jobs
WHERE job IN {keys} AND key >> {seq_bits} = :id

-- name: numbered
SELECT t.job FROM topic_jobs AS t CROSS JOIN jobs ON jobs.id = t.job
WHERE t.key > :id << {seq_bits} AND t.key <= :id << {seq_bits} | :upto
    AND jobs.queue = :queue AND jobs.status <= {in_flight}
ORDER BY t.key LIMIT :limit

-- name: tagged
SELECT t.job FROM topic_jobs AS t CROSS JOIN jobs ON jobs.id = t.job
WHERE t.key >> {seq_bits} = :id AND t.tag >= :low AND (:high IS NULL OR t.tag < :high)
    AND t.key <= :id << {seq_bits} | :upto
    AND jobs.queue = :queue AND jobs.status <= {in_flight}
LIMIT :limit

-- name: router
SELECT name, json(config), forwarded FROM topic_routers WHERE name = :name

-- name: count_routers
SELECT count(*) FROM topic_routers

-- name: routers_page
SELECT name, json(config), forwarded FROM topic_routers
WHERE name > :after AND name >= :low AND (:high IS NULL OR name < :high)
    AND (:source IS NULL OR source = :source) AND (:dest IS NULL OR dest = :dest)
ORDER BY name LIMIT :limit
