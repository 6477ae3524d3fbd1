-- The statements of the inbox.

-- name: lock_inbox
-- Those of some rows that are still there and were not refused.
SELECT id FROM inbox WHERE id = ANY (:rows::bigint[]) AND error IS NULL FOR UPDATE

-- name: delete_from_inbox
DELETE FROM inbox WHERE id = ANY (:rows::bigint[])

-- name: refuse_in_inbox
UPDATE inbox SET error = r.reason
FROM unnest(:refusals.0::bigint[], :refusals.1::text[]) AS r (id, reason)
WHERE inbox.id = ANY (ARRAY[r.id])

-- name: inbox_rows
-- The first rows behind one, until their documents have so many bytes together.
-- The documents are bytes: nothing of them is an escape of ours.
SELECT id, convert_to(document, 'UTF8') FROM (
    SELECT id, document, sum(octet_length(document)) OVER (ORDER BY id) - octet_length(document) AS before
    FROM (
        SELECT id, document FROM inbox WHERE error IS NULL AND id > :after ORDER BY id LIMIT :limit
    ) AS first
) AS measured
WHERE before < :bytes::bigint ORDER BY id

-- name: inbox_refused
SELECT id, split_part(error, ':', 1) FROM inbox WHERE error IS NOT NULL ORDER BY id LIMIT :limit
