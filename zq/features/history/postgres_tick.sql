-- The records of the history.

-- name: append_attempts
-- The history's facts about jobs whose attempt ends, in the form of
-- `zq.features.history.model.StoredAttempt`.
APPEND SELECT count(*) AS n, json_agg(json_build_array({attempt_columns}) ORDER BY nth)::text AS records
FROM unnest(:keys::bigint[]) WITH ORDINALITY AS k (key, nth) JOIN jobs ON jobs.id = ANY (ARRAY[k.key])

-- name: append_failures
-- Attempts that have failed, with the fields that differ. :failures lists [key, outcome, error_type,
-- message].
APPEND SELECT count(*) AS n, json_agg(json_build_array({attempt_columns}, outcome, kind, said)
    ORDER BY nth)::text AS records
FROM unnest(:failures.0::bigint[], :failures.1::json[], :failures.2::json[], :failures.3::json[])
    WITH ORDINALITY AS f (key, outcome, kind, said, nth)
JOIN jobs ON jobs.id = ANY (ARRAY[f.key])

-- name: append_forwarded
-- :records lists attempts of a device in this form.
APPEND SELECT json_array_length(:records::json) AS n, :records::json::text AS records
