"""What words in the queries of the history stand for."""

from zq.features.history.model import StoredAttempt
from zq.model.lifecycle import Status
from zq.store.sqlite.queries import columns

_OF_ATTEMPT = {
    "attempt": "attempts + 1",
    # A job that waits has not begun.
    "dequeued_at": f"iif(status = {Status.IN_FLIGHT.value}, dequeued_at, NULL)",
    "worker": "ifnull(claimant, holder)",
    "payload_bytes": "payload_size",
}

CONSTANTS = {"attempt_columns": columns(StoredAttempt, required=True, **_OF_ATTEMPT)}
