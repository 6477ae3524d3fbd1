-- Sweeps that have changed jobs.

-- name: note_slice
INSERT INTO sweeps (id, outline, changed, passed, changed_at)
VALUES (:id, :outline, :changed, :passed, :now)
ON CONFLICT (id) DO UPDATE SET changed = changed + excluded.changed, passed = excluded.passed,
    changed_at = excluded.changed_at

-- name: note_undone
UPDATE sweeps SET taken_back = min(taken_back + :n, changed) WHERE id = :id

-- name: last_sweep
SELECT ifnull(max(id), 0) FROM sweeps
