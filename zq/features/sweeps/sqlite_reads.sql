-- Sweeps as readers see them.

-- name: sweeps
SELECT json_group_array(json_array(id, json(outline), changed, passed, changed_at, taken_back))
FROM (SELECT * FROM sweeps WHERE id < :before ORDER BY id DESC LIMIT :limit)
