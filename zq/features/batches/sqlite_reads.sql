-- The hosts of batches as readers see them.

-- name: get_host
SELECT json_group_array({job_row}) FROM (SELECT job_id FROM open_batches WHERE key = :key)
CROSS JOIN jobs ON jobs.id = job_id
