"""What happens to jobs, in the words in which listeners are told of it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

MAX_PROGRESS = 8 * 1024
"""Bytes of one report of progress as JSON text."""


class EventType(StrEnum):
    """What can happen to a job."""

    ENQUEUED = "enqueued"
    STARTED = "started"
    PROGRESS = "progress"
    RETRYING = "retrying"
    """It has failed and is to be tried again."""
    COMPLETED = "completed"
    FAILED = "failed"
    """It has failed for good."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """Nobody took it in time."""
    STALLED = "stalled"
    """Whoever had it has not kept its lease."""


UNDER_WAY = frozenset(
    {EventType.STARTED, EventType.PROGRESS, EventType.COMPLETED, EventType.STALLED}
)
"""What happens in the course of a try."""


class Subject(Protocol):
    """A job that something has happened to. `attempts` counts its failures until then."""

    @property
    def key(self) -> int: ...

    @property
    def queue(self) -> str: ...

    @property
    def attempts(self) -> int: ...

    @property
    def unique_key(self) -> str | None: ...


News = tuple[EventType, Sequence[Subject]]
"""Jobs to which the same has happened in one tick."""


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """One of the news, without what makes a job large.

    `attempt` counts tries from 1: the one under way, or the one that has just failed; of a job that
    nobody works on it is how many have failed. `data` is the JSON text of a report of progress.
    """

    type: EventType
    key: int
    queue: str
    unique_key: str | None
    attempt: int
    data: str | None = None
