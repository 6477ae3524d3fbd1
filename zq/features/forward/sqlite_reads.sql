-- name: under_way
SELECT json_group_array(json_array(lane, jobs, oldest)) FROM (
    SELECT lane, sum(json_array_length(keys)) AS jobs,
        min((SELECT min(key.value) FROM json_each(keys) AS key)) AS oldest
    FROM lane_batches GROUP BY lane)
