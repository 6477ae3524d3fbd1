"""Frames: what a view shows at one moment, and how that differs from the moment before."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from zq.model.events import EventType
from zq.model.job import JobRecord
from zq.model.windows import ListName, Sight

MOST_CHANGES = 24
"""Changes that are told one by one; from there on the windows as they are say more in less."""


class Passage(Enum):
    """What becomes of a job in a window."""

    ENTERED = "entered"
    LEFT = "left"
    COMPLETED = "completed"
    FAILED = "failed"


class JobChange(NamedTuple):
    """One job that has entered or left a window, or has ended. `job` is told of one that enters."""

    list: ListName
    passage: Passage
    key: int
    job: JobRecord | None = None


class Frame(msgspec.Struct, eq=False):
    """One moment of a view. Frames of a view are numbered without gaps."""

    number: int
    sight: Sight
    changes: Sequence[JobChange] | None
    """Since the frame before, in the order in which they are to be told. None: see the windows."""
    texts: dict[Any, Any] = msgspec.field(default_factory=dict)
    """What doors have written of it: one text serves all who look."""


ENDINGS = {
    EventType.COMPLETED: Passage.COMPLETED,
    EventType.FAILED: Passage.FAILED,
    EventType.RETRYING: Passage.FAILED,
}


def changes_between(
    before: Sight, after: Sight, endings: Mapping[int, Passage]
) -> list[JobChange] | None:
    """What has entered and left each window; None where that does not tell all, or is too much.

    `endings` tells of jobs that somebody held how that has ended.
    """
    left: list[JobChange] = []
    entered: list[JobChange] = []
    for name, window in after.windows.items():
        old = before.windows[name]
        if (old.first_position, old.anchor) != (window.first_position, window.anchor):
            return None
        known = {job.key: job for job in old.jobs}
        for job in window.jobs:
            was = known.pop(job.key, None)
            if was is None:
                entered.append(JobChange(name, Passage.ENTERED, job.key, job))
            elif was != job:
                return None
        if name is ListName.IN_FLIGHT:
            ended = [key for key in known if key in endings]
            left += [JobChange(name, endings[key], key) for key in ended]
        left += [JobChange(name, Passage.LEFT, key) for key in known]
        if len(left) + len(entered) > MOST_CHANGES:
            return None
    # Who leaves makes room for who enters.
    return left + entered
