-- The hosts of batches as readers see them.

-- name: get_host
SELECT {job_row} FROM jobs WHERE id = (SELECT job_id FROM open_batches WHERE key = :key)
