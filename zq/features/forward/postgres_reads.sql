-- Lanes as readers see them.

-- name: under_way
SELECT lane, sum(json_array_length(keys))::bigint,
    min((SELECT min(key.value::bigint) FROM json_array_elements_text(keys) AS key))
FROM lane_batches GROUP BY lane

-- name: waiting_bytes
-- The bytes of the payloads of unfinished jobs in some queues, with keys from :first on and before :end.
SELECT coalesce(sum(payload_size), 0)::bigint FROM jobs
WHERE status <= {in_flight} AND queue = ANY (:queues::text[]) AND id >= :first AND id < :end

-- name: new_jobs
-- The ready jobs of some queues from a key on, of those in no line: their number and the first key by
-- queue.
SELECT queue, count(*), min(id) FROM jobs
WHERE status = {ready} AND held = 0 AND queue = ANY (:queues::text[]) AND id >= :first
GROUP BY queue

-- name: oldest_jobs
-- The oldest ready jobs of some queues up to a key, with their bytes.
SELECT id, payload_size FROM jobs
WHERE id <= :upto AND status = {ready} AND queue = ANY (:queues::text[])
ORDER BY id LIMIT :limit
