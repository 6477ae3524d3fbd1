-- Sweeps that have changed jobs.

-- name: note_slice
INSERT INTO sweeps (id, outline, changed, passed, changed_at)
VALUES (:id, :outline::json, :changed, :passed, :now)
ON CONFLICT (id) DO UPDATE SET changed = sweeps.changed + excluded.changed,
    passed = excluded.passed, changed_at = excluded.changed_at

-- name: note_undone
UPDATE sweeps SET taken_back = least(taken_back + :n::bigint, changed) WHERE id = :id

-- name: last_sweep
SELECT coalesce((SELECT id FROM sweeps ORDER BY id DESC LIMIT 1), 0)
