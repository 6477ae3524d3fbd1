-- Statements that read alike in both stores.

-- name: from_head
SELECT id FROM jobs WHERE LIST ORDER BY PLACE, id LIMIT :limit OFFSET :offset

-- name: from_tail
SELECT id FROM jobs WHERE LIST ORDER BY PLACE DESC, id DESC LIMIT :limit OFFSET :offset

-- name: next_beyond
SELECT id FROM jobs WHERE LIST AND PLACE > :place AND MATCHES ORDER BY PLACE, id LIMIT 1

-- name: previous_beyond
SELECT id FROM jobs WHERE LIST AND PLACE < :place AND MATCHES ORDER BY PLACE DESC, id DESC LIMIT 1
