-- Sweeps as readers see them.

-- name: sweeps
SELECT id, outline, changed, passed, changed_at, taken_back FROM sweeps
WHERE id < :before ORDER BY id DESC LIMIT :limit
