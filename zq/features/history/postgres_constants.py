"""What words in the queries of the history stand for."""

from zq.features.history.model import StoredAttempt
from zq.model.lifecycle import Status
from zq.store.postgres.queries import columns

_OF_ATTEMPT = {
    "key": "jobs.id",
    "attempt": "attempts + 1",
    # A job that waits has not begun.
    "dequeued_at": f"CASE WHEN status = {Status.IN_FLIGHT.value} THEN dequeued_at END",
    "worker": "coalesce(to_json(claimant), to_json(holder))",
    "payload_bytes": "payload_size",
}

CONSTANTS = {"attempt_columns": columns(StoredAttempt, required=True, **_OF_ATTEMPT)}
