-- Groups of failures by their causes.

-- name: known_error_groups
-- :names lists [signature, queue]. Those of them that are counted already.
SELECT s, q FROM unnest(:names.0::text[], :names.1::text[]) AS n (s, q)
WHERE EXISTS (SELECT 1 FROM error_groups WHERE signature = s AND queue = q OFFSET 0)

-- name: write_error_groups
-- :groups lists [signature, queue, error type, message, n, sample, types].
INSERT INTO error_groups (
    signature, queue, error_type, message, n, sample, first_seen, last_seen, types)
SELECT s, q, kind, said, count, key, :now::bigint, :now::bigint, types
FROM unnest(:groups.0::text[], :groups.1::text[], :groups.2::text[], :groups.3::text[],
    :groups.4::bigint[], :groups.5::bigint[], :groups.6::json[])
    AS g (s, q, kind, said, count, key, types)
ON CONFLICT (signature, queue) DO UPDATE
SET n = error_groups.n + excluded.n, sample = excluded.sample,
    last_seen = greatest(error_groups.last_seen, excluded.last_seen),
    types = (SELECT coalesce(json_agg(type), '[]') FROM (
        SELECT value COLLATE "C" AS type FROM json_array_elements_text(error_groups.types)
        UNION SELECT value COLLATE "C" FROM json_array_elements_text(excluded.types)
        ORDER BY type LIMIT :most_types) AS types)

-- name: write_failure_counts
-- :groups lists [signature, queue, _, _, n]. :lengths are in milliseconds.
INSERT INTO failure_counts (length, at, signature, queue, n)
SELECT l.ms, :now::bigint - :now::bigint % l.ms, g.s, g.q, g.count
FROM unnest(:lengths::bigint[]) AS l (ms)
CROSS JOIN unnest(:groups.0::text[], :groups.1::text[], :groups.4::bigint[]) AS g (s, q, count)
ON CONFLICT (length, at, signature, queue) DO UPDATE SET n = failure_counts.n + excluded.n
