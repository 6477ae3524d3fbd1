-- Statements about batches. A batch is open while its host is ready and its time is not over.

-- name: read_hosts
-- There are two lists: the revisions by host, and the hosts. Hosts that are no longer open are included.
SELECT job_id, revision FROM open_batches WHERE key = ANY (:names::text[])

-- name: read_host_jobs
SELECT {job_row} FROM jobs
WHERE id = ANY (ARRAY(SELECT job_id FROM open_batches WHERE key = ANY (:names::text[])))

-- name: close_batches
DELETE FROM open_batches WHERE job_id = {keys}
