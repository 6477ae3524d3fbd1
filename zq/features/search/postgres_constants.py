"""What words in the queries of searches stand for."""

_SEARCHED = (
    "lower((type || chr(10) || CASE WHEN attempts = 0 THEN '' ELSE coalesce((SELECT message"
    " FROM errors WHERE job_id = id ORDER BY attempt DESC LIMIT 1), '') END || chr(10)"
    " || coalesce(payload, (SELECT body FROM payloads WHERE job_id = id), '')) COLLATE \"C\")"
)
"""The text of a job in which words are looked for. With this collation, only ASCII letters become
small."""

CONSTANTS = {"searched": _SEARCHED}
