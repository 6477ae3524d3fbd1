-- Statements that read alike in both stores.

-- name: ascending
-- A number of jobs, and fewer if their payloads are large.
WITH near AS MATERIALIZED (
    SELECT id, type, payload, payload_size, attempts FROM jobs
    WHERE id > :after AND CONDITIONS ORDER BY id LIMIT :rows
), sized AS MATERIALIZED (
    SELECT *, sum(payload_size) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - payload_size AS before
    FROM near
), written AS MATERIALIZED (SELECT id, {searched} AS text FROM sized WHERE before < :bytes)
SELECT id, WORDS FROM written ORDER BY id

-- name: descending
WITH near AS MATERIALIZED (
    SELECT id, type, payload, payload_size, attempts FROM jobs
    WHERE id < :after AND CONDITIONS ORDER BY id DESC LIMIT :rows
), sized AS MATERIALIZED (
    SELECT *, sum(payload_size) OVER (ORDER BY id DESC ROWS UNBOUNDED PRECEDING) - payload_size
        AS before
    FROM near
), written AS MATERIALIZED (SELECT id, {searched} AS text FROM sized WHERE before < :bytes)
SELECT id, WORDS FROM written ORDER BY id DESC
