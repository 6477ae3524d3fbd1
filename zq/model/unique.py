"""Unique keys: their owners, and how long these own them.

One key space spans all queues and types. A job may instead have its key among those of its queue,
and takes it along to another queue. The latest job that was stored with a key owns it while the
job's status lies inside its scope. A new job with the key is a duplicate if the owner's status lies
inside the *new* job's scope. A cancelled or expired job owns nothing.
"""

from enum import IntEnum, StrEnum

from zq.model.lifecycle import Status


class Scope(IntEnum):
    """`unique_while`: the part of a job's life that its key covers. The numbers are stored."""

    QUEUED = 0
    ACTIVE = 1
    EXISTS = 2


class KeySpace(IntEnum):
    """`unique_in`: the jobs among which a key is looked for. The numbers are stored."""

    ALL = 0
    QUEUE = 1


def lock_of(queue: str, key: str, space: KeySpace) -> str:
    """The stored form of a key. Queue names are not empty and have no comma, so no two collide."""
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
    """The fate of a job whose key has an owner."""

    RETURN = "return"
    """The job is a duplicate: it is not stored, and the answer names the owner."""
    REPLACE_DEAD = "replace_dead"
    """Like RETURN, but a dead owner gives up the key."""
    REPLACE_PAYLOAD = "replace_payload"
    """Like RETURN, but an owner that waits takes the new payload. It keeps its id and place."""
    REPLACE_CONTENT = "replace_content"
    """Like REPLACE_PAYLOAD, with `meta`, `content_type` and `traceparent` as well."""
