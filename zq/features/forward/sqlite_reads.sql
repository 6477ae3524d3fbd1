-- name: under_way
SELECT json_group_array(json_array(lane, jobs, oldest)) FROM (
    SELECT lane, sum(json_array_length(keys)) AS jobs,
        min((SELECT min(key.value) FROM json_each(keys) AS key)) AS oldest
    FROM lane_batches GROUP BY lane)

-- name: waiting_bytes
-- The bytes of the payloads of unfinished jobs in some queues.
SELECT cast(total(payload_size) AS INTEGER) FROM jobs
WHERE status <= {in_flight} AND queue IN (SELECT value FROM json_each(:queues))

-- name: oldest_jobs
-- The oldest ready jobs of some queues up to a key, with their bytes. They are near the beginning of
-- the table, as a rule.
SELECT json_group_array(json_array(id, payload_size)) FROM (
    SELECT id, payload_size FROM jobs NOT INDEXED
    WHERE id <= :upto AND status = {ready} AND queue IN (SELECT value FROM json_each(:queues))
    ORDER BY id LIMIT :limit)
