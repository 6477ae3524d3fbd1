"""The events of jobs, as listeners get them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

MAX_PROGRESS = 8 * 1024
"""The largest report of progress, in bytes of JSON text."""


class EventType(StrEnum):
    """The kinds of events."""

    ENQUEUED = "enqueued"
    STARTED = "started"
    PROGRESS = "progress"
    RETRYING = "retrying"
    """An attempt has failed, and there will be another one."""
    COMPLETED = "completed"
    FAILED = "failed"
    """The job is dead: it will not be tried again."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """Nobody took it in time."""
    STALLED = "stalled"
    """The worker has not kept the lease of the job."""
    CLOCK_SET = "clock_set"
    """The wall clock was set by more than a minute. This event has no job."""


UNDER_WAY = frozenset(
    {EventType.STARTED, EventType.PROGRESS, EventType.COMPLETED, EventType.STALLED}
)
"""The events of an attempt under way."""


class Subject(Protocol):
    """The job of an event. `attempts` counts its failures so far."""

    @property
    def key(self) -> int: ...

    @property
    def queue(self) -> str: ...

    @property
    def attempts(self) -> int: ...

    @property
    def unique_key(self) -> str | None: ...


News = tuple[EventType, Sequence[Subject]]
"""Jobs with the same event in one tick."""


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """An event without the large parts of its job.

    `attempt` counts attempts from 1: the one under way, or the one that has just failed. If nobody
    works on the job, it is the number of failures. `data` is a report of progress as JSON text.
    """

    type: EventType
    key: int
    queue: str
    unique_key: str | None
    attempt: int
    data: str | None = None
