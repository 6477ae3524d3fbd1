-- Statements that read alike in both stores.

-- name: free
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue LIMIT :most) AS few

-- name: in_line
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE line = :line AND status = {ready} AND held = 2 LIMIT :most) AS few
