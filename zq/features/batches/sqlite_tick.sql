-- Statements about batches. A batch is open while its host is ready and its time is not over.

-- name: read_hosts
-- NAMES stands for one parameter a key: json_each would cut a key short at a NUL. There are two lists:
-- the revisions by host, and the hosts. Hosts that are no longer open are included.
SELECT json_group_array(json_array(job_id, revision)) FROM open_batches WHERE key IN (NAMES)

-- name: read_host_jobs
SELECT json_group_array({job_row}) FROM (SELECT job_id FROM open_batches WHERE key IN (NAMES))
CROSS JOIN jobs ON jobs.id = job_id

-- name: close_batches
DELETE FROM open_batches WHERE job_id IN {keys}
