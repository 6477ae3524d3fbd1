-- The records of the history.

-- name: append_attempts
-- The history's facts about jobs whose attempt ends, in the form of
-- `zq.features.history.model.StoredAttempt`.
APPEND SELECT count(*) AS n, json_group_array(json_array({attempt_columns})) AS records
FROM (SELECT value AS key FROM json_each(:keys)) CROSS JOIN jobs ON jobs.id = key

-- name: append_forwarded
-- :records lists attempts of a device in this form.
APPEND SELECT json_array_length(:records) AS n, :records AS records

-- name: append_failures
-- Attempts that have failed, with the fields that differ. :failures lists [key, outcome, error_type,
-- message]. They stay JSON, since as SQL text they would end at a NUL.
APPEND SELECT count(*) AS n, json_group_array(json_array({attempt_columns},
    failure -> 1, failure -> 2, failure -> 3)) AS records
FROM (SELECT value AS failure FROM json_each(:failures)) CROSS JOIN jobs ON jobs.id = failure ->> 0
