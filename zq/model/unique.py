"""Unique keys: who owns one, and until when.

One key space spans all queues and types; a job may have its key among those of its queue instead,
and takes it along to another queue. The latest job stored with a key owns it while the job's
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


class KeySpace(IntEnum):
    """`unique_in`: among which jobs a key is looked for. The numbers are stored."""

    ALL = 0
    QUEUE = 1


def lock_of(queue: str, key: str, space: KeySpace) -> str:
    """What a key is told from others by: queues have names, and no comma in them."""
    return f"{queue if space is KeySpace.QUEUE else ''},{key}"


NAMES: dict[Scope, str] = {scope: scope.name.lower() for scope in Scope}
SPACES: dict[str, KeySpace] = {space.name.lower(): space for space in KeySpace}
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
    REPLACE_CONTENT = "replace_content"
    """The same, and it gets `meta`, `content_type` and `traceparent` too."""
