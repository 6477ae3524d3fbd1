"""What words in the statements of the history stand for."""

from zq.features.history.model import StoredAttempt
from zq.model.lifecycle import Status
from zq.store.texts import columns_of

_OF_ATTEMPT = {"key": "jobs.id", "attempt": "attempts + 1", "payload_bytes": "payload_size"}

CONSTANTS = {
    "sqlite": {
        "attempt_columns": columns_of(
            StoredAttempt,
            {
                **_OF_ATTEMPT,
                # A job that waits has not begun.
                "dequeued_at": f"iif(status = {Status.IN_FLIGHT.value}, dequeued_at, NULL)",
                "worker": "ifnull(claimant, holder)",
            },
            required=True,
        )
    },
    "postgres": {
        "attempt_columns": columns_of(
            StoredAttempt,
            {
                **_OF_ATTEMPT,
                "dequeued_at": f"CASE WHEN status = {Status.IN_FLIGHT.value} THEN dequeued_at END",
                "worker": "coalesce(to_json(claimant), to_json(holder))",
            },
            "jobs.{}",
            required=True,
        )
    },
}
