-- Statements that read alike in both stores.

-- name: is_shut
SELECT held & 1 FROM jobs WHERE id = :key

-- name: budget
SELECT key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,
    pays_at, maker, unfinished, waiting, costliest, held_until
FROM budgets WHERE key = :key

-- name: lines_of_queue
-- Lines of a queue that draw, how many jobs of each may be claimed up to :deep, and when the first became
-- ready.
SELECT queue, draws, (
        SELECT count(*) FROM (SELECT 1 FROM jobs WHERE line = lines.id AND status = {ready} AND held = 2
            LIMIT :deep) AS few),
    (SELECT ready_at FROM jobs WHERE id = head)
FROM lines WHERE queue = :queue AND head IS NOT NULL AND draws <> '' LIMIT :most

-- name: lines_of_all
-- Those of all queues.
SELECT queue, draws, (
        SELECT count(*) FROM (SELECT 1 FROM jobs WHERE line = lines.id AND status = {ready} AND held = 2
            LIMIT :deep) AS few),
    (SELECT ready_at FROM jobs WHERE id = head)
FROM lines WHERE head IS NOT NULL AND draws <> '' LIMIT :most

-- name: more_urgent
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
        AND priority < :priority LIMIT :most) AS few

-- name: older
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
        AND priority = :priority AND id < :key LIMIT :most) AS few

-- name: first_in_line
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE line = (SELECT line FROM jobs WHERE id = :key)
        AND status = {ready} AND held = 2 AND id < :key LIMIT :most) AS few
