-- Queries of searches. CONDITIONS stands for the plain part of a filter, and WORDS for a condition
-- on the text of a job, in which ASCII letters are small ones.

-- name: places
SELECT queue, status, count(*) FROM jobs WHERE id = {keys} GROUP BY queue, status

-- name: types
-- Of the latest jobs, of the latest dead ones, and of those that a queue would deliver next.
SELECT DISTINCT type FROM jobs WHERE id = ANY (ARRAY(
    (SELECT id FROM jobs ORDER BY id DESC LIMIT :limit)
    UNION ALL (
        SELECT id FROM jobs WHERE status = ANY (ARRAY[{dead}]) AND status <> {ready}
        ORDER BY status DESC, id DESC LIMIT :limit)
    UNION ALL (
        SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
        ORDER BY priority, id LIMIT :limit))) AND CONDITIONS

-- name: payload_keys
SELECT DISTINCT k.key FROM (SELECT payload FROM jobs WHERE id = ANY (ARRAY(
    (SELECT id FROM jobs ORDER BY id DESC LIMIT :limit)
    UNION ALL (
        SELECT id FROM jobs WHERE status = ANY (ARRAY[{dead}]) AND status <> {ready}
        ORDER BY status DESC, id DESC LIMIT :limit)
    UNION ALL (
        SELECT id FROM jobs WHERE status = {ready} AND held = 0 AND queue = :queue
        ORDER BY priority, id LIMIT :limit)))
    AND CONDITIONS AND json_typeof(payload::json) = 'object'
    AND payload !~ '\\u(0000|[dD][89a-fA-F])') AS p
CROSS JOIN LATERAL json_object_keys(p.payload::json) AS k (key) LIMIT :most

-- name: contains
strpos(text, NEEDLE) > 0
