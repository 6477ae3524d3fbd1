"""Unique keys: who owns one, and until when.

One key space spans all queues and types. The latest job stored with a key owns it while the job's
status lies inside its scope; a new job with the key is a duplicate if the owner's status lies
inside the *new* job's scope. A cancelled or expired job
owns nothing.
"""

from enum import IntEnum, StrEnum

from zq.model.lifecycle import Status


class Scope(IntEnum):
    """`unique_while`: the span of a job's life that its key covers. The numbers are stored."""

    QUEUED = 0
    ACTIVE = 1
    EXISTS = 2


NAMES: dict[Scope, str] = {scope: scope.name.lower() for scope in Scope}
BY_NAME: dict[str, Scope] = {name: scope for scope, name in NAMES.items()}

COVERS: dict[Scope, frozenset[Status]] = {
    Scope.QUEUED: frozenset({Status.SCHEDULED, Status.READY}),
    Scope.ACTIVE: frozenset({Status.SCHEDULED, Status.READY, Status.IN_FLIGHT}),
    Scope.EXISTS: frozenset(Status) - {Status.CANCELLED, Status.EXPIRED},
}


class OnConflict(StrEnum):
    """What becomes of a job whose key has an owner."""

    RETURN = "return"
    """It is a duplicate: not stored, and answered with the owner."""
    REPLACE_DEAD = "replace_dead"
    """The same, but a dead owner has to hand over the key."""
    REPLACE_PAYLOAD = "replace_payload"
    """The same, but an owner that still waits gets its payload, and keeps its id and place."""
