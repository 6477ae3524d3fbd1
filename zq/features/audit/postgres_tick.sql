-- The records of the audit.

-- name: append_actions
-- :actions lists the records of the audit.
APPEND SELECT json_array_length(:actions::json) AS n, :actions::json::text AS records
