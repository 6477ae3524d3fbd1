-- What is looked up of queue topics, whose records are jobs. They have those that are unfinished.

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

-- name: examined
-- The last number that one look at a queue examines, where there are more than these.
SELECT key & {max_seq} FROM topic_jobs
WHERE key > :id << {seq_bits} | :after AND key <= :id << {seq_bits} | :upto
ORDER BY key LIMIT 1 OFFSET :most - 1

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

-- name: others
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
