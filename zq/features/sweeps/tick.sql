-- Statements that read alike in both stores.

-- name: forget_sweeps
DELETE FROM sweeps WHERE id <= :upto

-- name: end_sweep
UPDATE sweeps SET passed = 1 WHERE id = :id

-- name: clear_sweeps
DELETE FROM sweeps
