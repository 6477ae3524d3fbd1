"""Windows on the lists of unfinished jobs: what is asked for, what is seen, what is looked for."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from zq.model.job import JobRecord
from zq.model.lifecycle import Status

MOST_ROWS = 500
"""Jobs in one window; who asks for more gets as many."""

USUAL_ROWS = 200


class ListName(StrEnum):
    """A list of all jobs in one state, each in an order of its own."""

    READY = "ready"
    """By priority, then by age: as they are taken."""
    IN_FLIGHT = "in_flight"
    """By when they were taken."""
    SCHEDULED = "scheduled"
    """By when they become ready."""


STATUS_OF = {
    ListName.READY: Status.READY,
    ListName.IN_FLIGHT: Status.IN_FLIGHT,
    ListName.SCHEDULED: Status.SCHEDULED,
}


class AnchorKind(StrEnum):
    """What a window goes by."""

    HEAD = "head"
    TAIL = "tail"
    OFFSET = "offset"
    AROUND = "around"


class Fallback(StrEnum):
    """Where a window is whose job is no longer in the list."""

    HEAD = "head"
    TAIL = "tail"
    NOWHERE = "nowhere"


class Anchor(msgspec.Struct, frozen=True):
    """Where a window is: `offset` is of its first row, `key` that of the job in its middle."""

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
    """The key of the job that it is around, where that is in the list."""


NO_JOBS = JobWindow([], 0, 0)


class ListsView(msgspec.Struct, frozen=True):
    """A window on each list."""

    ready: WindowRequest = WindowRequest()
    in_flight: WindowRequest = WindowRequest()
    scheduled: WindowRequest = WindowRequest()

    def of(self, list: ListName) -> WindowRequest:
        """The window on one of them."""
        request: WindowRequest = getattr(self, list.value)
        return request

    def changed(self, list: ListName, request: WindowRequest) -> "ListsView":
        """The same with another window on one of them."""
        return msgspec.structs.replace(self, **{list.value: request})


class Sight(NamedTuple):
    """What a view shows at one moment."""

    windows: dict[ListName, JobWindow]
    totals: dict[ListName, int]


class Direction(StrEnum):
    """Which way a search goes."""

    FORWARD = "forward"
    BACKWARD = "backward"
    LOCATE = "locate"
    """Nowhere: it tells where its anchor is."""


class JobSearch(msgspec.Struct, frozen=True):
    """A search for the next job whose queue contains one of `queues`, and its type one of `types`.

    It begins beyond the job `after`; with None, or where that job is not in the list, at the end
    that it comes from. The window around what is found has up to `limit` rows.
    """

    list: ListName
    direction: Direction
    after: int | None = None
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    limit: int = USUAL_ROWS


class FoundJob(NamedTuple):
    """What a search has found, with the window around it; `position` of None: nothing."""

    position: int | None
    window: JobWindow
    totals: dict[ListName, int]
