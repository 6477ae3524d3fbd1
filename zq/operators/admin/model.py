"""Windows on the lists of unfinished jobs: requests, contents and searches."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from zq.model.job import JobRecord
from zq.model.lifecycle import Status

MOST_ROWS = 500
"""The most jobs in one window. A larger request gets as many."""

USUAL_ROWS = 200


class ListName(StrEnum):
    """A list of all jobs in one state. Each has its own order."""

    READY = "ready"
    """By priority, then by age: the order in which they are taken."""
    IN_FLIGHT = "in_flight"
    """By the time when they were taken."""
    SCHEDULED = "scheduled"
    """By the time when they become ready."""


STATUS_OF = {
    ListName.READY: Status.READY,
    ListName.IN_FLIGHT: Status.IN_FLIGHT,
    ListName.SCHEDULED: Status.SCHEDULED,
}


class AnchorKind(StrEnum):
    """The reference of a window."""

    HEAD = "head"
    TAIL = "tail"
    OFFSET = "offset"
    AROUND = "around"


class Fallback(StrEnum):
    """The place of a window whose job is no longer in the list."""

    HEAD = "head"
    TAIL = "tail"
    NOWHERE = "nowhere"


class Anchor(msgspec.Struct, frozen=True):
    """The place of a window: the `offset` of its first row, or the `key` of its middle job."""

    kind: AnchorKind = AnchorKind.HEAD
    offset: int = 0
    key: int | None = None
    fallback: Fallback = Fallback.NOWHERE


class WindowRequest(msgspec.Struct, frozen=True):
    """Up to `limit` rows of a list."""

    anchor: Anchor = Anchor()
    limit: int = USUAL_ROWS


class JobWindow(msgspec.Struct):
    """Jobs in the order of their list, without large payloads. Positions count from 0."""

    jobs: list[JobRecord]
    first_position: int
    total: int
    anchor: int | None = None
    """The key of the job around which it lies, if that is in the list."""


NO_JOBS = JobWindow([], 0, 0)


class ListsView(msgspec.Struct, frozen=True):
    """A window on each list."""

    ready: WindowRequest = WindowRequest()
    in_flight: WindowRequest = WindowRequest()
    scheduled: WindowRequest = WindowRequest()

    def of(self, list: ListName) -> WindowRequest:
        """The window on one list."""
        request: WindowRequest = getattr(self, list.value)
        return request

    def changed(self, list: ListName, request: WindowRequest) -> "ListsView":
        """This view, with another window on one list."""
        return msgspec.structs.replace(self, **{list.value: request})


class ViewContents(NamedTuple):
    """The contents of a view at one moment."""

    windows: dict[ListName, JobWindow]
    totals: dict[ListName, int]


class Direction(StrEnum):
    """The direction of a search."""

    FORWARD = "forward"
    BACKWARD = "backward"
    LOCATE = "locate"
    """None: it only finds where its anchor is."""


class JobSearch(msgspec.Struct, frozen=True):
    """A search for the next job whose queue contains one of `queues`, and its type one of `types`.

    It begins beyond the job `after`. With None, or if that job is not in the list, it begins with
    the first job in its direction. The window around the found job has up to `limit` rows.
    """

    list: ListName
    direction: Direction
    after: int | None = None
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    limit: int = USUAL_ROWS


class FoundJob(NamedTuple):
    """The result of a search, with the window around it; a `position` of None means no result."""

    position: int | None
    window: JobWindow
    totals: dict[ListName, int]
