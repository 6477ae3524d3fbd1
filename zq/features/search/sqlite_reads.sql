-- Queries of searches. CONDITIONS stands for the plain part of a filter, and WORDS for a condition
-- on the text of a job, in which ASCII letters are small ones.

-- name: places
SELECT queue, status, count(*) FROM jobs WHERE id IN {keys} GROUP BY queue, status

-- name: types
-- Of the latest jobs, of the latest dead ones, and of those that a queue would deliver next.
SELECT DISTINCT type FROM jobs WHERE id IN (
    SELECT * FROM (SELECT id FROM jobs ORDER BY id DESC LIMIT :limit)
    UNION SELECT * FROM (
        SELECT id FROM jobs WHERE status = {dead} AND status <> {ready} ORDER BY id DESC LIMIT :limit)
    UNION SELECT * FROM (
        SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
        ORDER BY priority, id LIMIT :limit)
) AND CONDITIONS

-- name: payload_keys
SELECT DISTINCT k.key FROM (SELECT payload FROM jobs WHERE id IN (
    SELECT * FROM (SELECT id FROM jobs ORDER BY id DESC LIMIT :limit)
    UNION SELECT * FROM (
        SELECT id FROM jobs WHERE status = {dead} AND status <> {ready} ORDER BY id DESC LIMIT :limit)
    UNION SELECT * FROM (
        SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
        ORDER BY priority, id LIMIT :limit)
) AND CONDITIONS AND iif(payload IS NULL, false, json_type(payload) = 'object')) AS p
CROSS JOIN json_each(p.payload) AS k LIMIT :most

-- name: contains
instr(text, NEEDLE) > 0
