"""Frames: the contents of a view at one moment, and the changes since the moment before."""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from zq.model.events import EventType
from zq.model.job import JobRecord
from zq.operators.admin.model import ListName, ViewContents

MOST_CHANGES = 24
"""The most changes that are listed one by one. Above that, whole windows are shorter."""


class WindowEvent(Enum):
    """The event of a job in a window."""

    ENTERED = "entered"
    LEFT = "left"
    COMPLETED = "completed"
    FAILED = "failed"


class JobChange(NamedTuple):
    """One job that has entered or left a window, or has ended. `job` is set if it enters."""

    list: ListName
    passage: WindowEvent
    key: int
    job: JobRecord | None = None


class Frame(msgspec.Struct, eq=False):
    """One moment of a view. Frames of a view are numbered without gaps."""

    number: int
    sight: ViewContents
    changes: Sequence[JobChange] | None
    """The changes since the last frame, in order. None means: use the windows."""
    texts: dict[Any, Any] = msgspec.field(default_factory=dict)
    """The text that each door has made of the frame, shared by all viewers."""


ENDINGS = {
    EventType.COMPLETED: WindowEvent.COMPLETED,
    EventType.FAILED: WindowEvent.FAILED,
    EventType.RETRYING: WindowEvent.FAILED,
}


def changes_between(
    before: ViewContents,
    after: ViewContents,
    endings: Callable[[Collection[int]], Mapping[int, WindowEvent]],
) -> list[JobChange] | None:
    """The jobs that have entered and left each window; None if a list cannot show every change.

    `endings` says of jobs that were in flight, by their keys, how they ended.
    """
    left: list[tuple[ListName, int]] = []
    entered: list[JobChange] = []
    for name, window in after.windows.items():
        old = before.windows[name]
        if (old.first_position, old.anchor) != (window.first_position, window.anchor):
            return None
        known = {job.key: job for job in old.jobs}
        for job in window.jobs:
            was = known.pop(job.key, None)
            if was is None:
                entered.append(JobChange(name, WindowEvent.ENTERED, job.key, job))
            elif was != job:
                return None
        left += [(name, key) for key in known]
        if len(left) + len(entered) > MOST_CHANGES:
            return None
    # A job that leaves makes room for one that enters.
    return _departures(left, endings) + entered


def _departures(
    left: Sequence[tuple[ListName, int]],
    endings: Callable[[Collection[int]], Mapping[int, WindowEvent]],
) -> list[JobChange]:
    """Jobs that have left, in order: a job whose end is known has ended, and then left."""
    in_flight = {key for name, key in left if name is ListName.IN_FLIGHT}
    ended = endings(in_flight) if in_flight else {}
    ends = [JobChange(ListName.IN_FLIGHT, passage, key) for key, passage in ended.items()]
    return ends + [JobChange(name, WindowEvent.LEFT, key) for name, key in left]
