"""Unique keys: who owns one, and until when.

One key space spans all queues and types. The latest job stored with a key owns it while the job's
status lies inside its scope; a new job with the key is a duplicate if the owner's status lies
inside the *new* job's scope.
"""

from enum import IntEnum

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
    Scope.EXISTS: frozenset(Status),
}
