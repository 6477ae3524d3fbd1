"""What words in the queries of searches stand for."""

_SEARCHED = (
    "lower(type || char(10) || iif(attempts = 0, '', ifnull((SELECT message FROM errors"
    " WHERE job_id = id ORDER BY attempt DESC LIMIT 1), '')) || char(10)"
    " || ifnull(payload, ifnull((SELECT body FROM payloads WHERE job_id = id), '')))"
)
"""The text of a job in which words are looked for."""

CONSTANTS = {"searched": _SEARCHED}
