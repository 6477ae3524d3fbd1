"""What may be read of the lists of unfinished jobs, whichever the store is.

The head and the tail of the ready and of the scheduled jobs come from an index that has their
order, as many rows as requested. A window further inside costs one step over an index entry for
each job before it, or after it if those are fewer. Jobs in flight have no such index, since every
take would have to write it: they are sorted each time. A caller that reads again and again should
mind how long the last read took.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from zq.model.job import MAX_TIME
from zq.model.lifecycle import Status
from zq.operators.admin.model import (
    NO_JOBS,
    STATUS_OF,
    AnchorKind,
    Direction,
    Fallback,
    FoundJob,
    JobSearch,
    JobWindow,
    ListName,
    ListsView,
    ViewContents,
    WindowRequest,
)
from zq.store.snapshot import Snapshot, SnapshotLanes, flat

LAST_KEY = 2**63 - 1

LISTS = {
    ListName.READY: (f"status = {Status.READY.value} AND held = 0", "priority"),
    ListName.IN_FLIGHT: (
        f"status = {Status.IN_FLIGHT.value} AND status <> {Status.READY.value}",
        "dequeued_at",
    ),
    ListName.SCHEDULED: (f"status = {Status.SCHEDULED.value}", "ready_at"),
}
"""The condition and the first column of the order. Stores know their indexes by these words."""


class _Spot(NamedTuple):
    """The place of a job in the order of its list."""

    place: int
    key: int


BEFORE_ALL = _Spot(-1, -1)
BEHIND_ALL = _Spot(MAX_TIME, LAST_KEY)


def see(snapshot: Snapshot, view: ListsView) -> ViewContents:
    """Read the contents of a view."""
    totals = _totals(snapshot)
    windows = {list: _window(snapshot, list, view.of(list), totals[list]) for list in ListName}
    return ViewContents(windows, totals)


def search(snapshot: Snapshot, wanted: JobSearch) -> FoundJob:
    """Find the next job that matches, and the window around it."""
    totals = _totals(snapshot)
    list, after = wanted.list, wanted.after
    spot = None if after is None else _spot_of(snapshot, list, after)
    if wanted.direction is Direction.LOCATE:
        key = None if spot is None else spot.key
    else:
        key = _next(snapshot, wanted, spot)
    found = None if key is None else _spot_of(snapshot, list, key)
    if found is None:
        return FoundJob(None, NO_JOBS, totals)
    position = _position(snapshot, list, found)
    window = _around(snapshot, list, found, position, wanted.limit, totals[list])
    return FoundJob(position, window, totals)


def _window(snapshot: Snapshot, list: ListName, request: WindowRequest, total: int) -> JobWindow:
    anchor, limit = request.anchor, request.limit
    if not total:
        return NO_JOBS
    kind: AnchorKind | Fallback = anchor.kind
    if anchor.kind is AnchorKind.AROUND:
        spot = None if anchor.key is None else _spot_of(snapshot, list, anchor.key)
        if spot is not None:
            position = _position(snapshot, list, spot)
            return _around(snapshot, list, spot, position, limit, total)
        kind = anchor.fallback
    match kind.value:
        case "nowhere":
            return JobWindow([], 0, total)
        case "tail":
            first = max(total - limit, 0)
        case "offset":
            first = min(anchor.offset, max(total - limit, 0))
        case _:
            first = 0
    return _rows(snapshot, list, first, limit, total)


def _around(
    snapshot: Snapshot,
    list: ListName,
    spot: _Spot,
    position: int,
    limit: int,
    total: int,
) -> JobWindow:
    first = max(min(position - limit // 2, total - limit), 0)
    window = _rows(snapshot, list, first, limit, total)
    window.anchor = spot.key
    return window


def _rows(snapshot: Snapshot, list: ListName, first: int, limit: int, total: int) -> JobWindow:
    """The rows from a position on, counted from the nearer end."""
    rows = max(min(limit, total - first), 0)
    behind = total - first - rows
    if first <= behind:
        keys = _keys(snapshot, "from_head", list, rows, first)
    else:
        keys = _keys(snapshot, "from_tail", list, rows, behind)
    jobs = snapshot.jobs("jobs", _words(list), keys=keys)
    jobs.sort(key=attrgetter(LISTS[list][1], "key"))
    return JobWindow(jobs, first, total)


def _keys(snapshot: Snapshot, name: str, list: ListName, limit: int, offset: int) -> Sequence[int]:
    return flat(snapshot.rows(name, _words(list), limit=limit, offset=offset))


def _spot_of(snapshot: Snapshot, list: ListName, key: int) -> _Spot | None:
    found = snapshot.rows("place_of", _words(list), key=key)
    return _Spot(found[0][0], key) if found else None


def _position(snapshot: Snapshot, list: ListName, spot: _Spot) -> int:
    ((count,),) = snapshot.rows("count_before", _words(list), **spot._asdict())
    return int(count)


def _next(snapshot: Snapshot, wanted: JobSearch, spot: _Spot | None) -> int | None:
    is_forward = wanted.direction is Direction.FORWARD
    spot = spot or (BEFORE_ALL if is_forward else BEHIND_ALL)
    parameters: dict[str, object] = spot._asdict()
    conditions = ["true"]
    for column, words in (("queue", wanted.queues), ("type", wanted.types)):
        if words:
            named = {f"{column}_{index}": word for index, word in enumerate(words)}
            contains = snapshot.text("contains").replace("COLUMN", column)
            among = " OR ".join(contains.replace("WORD", f":{name}") for name in named)
            conditions.append(f"({among})")
            parameters |= named
    way = "next" if is_forward else "previous"
    for name in (f"{way}_beside", f"{way}_beyond"):
        words_of_list = _words(wanted.list) | {"MATCHES": " AND ".join(conditions)}
        if found := snapshot.rows(name, words_of_list, **parameters):
            return int(found[0][0])
    return None


def _totals(snapshot: Snapshot) -> dict[ListName, int]:
    counts = dict(snapshot.rows("totals"))
    return {list: counts.get(status.value, 0) for list, status in STATUS_OF.items()}


def _words(list: ListName) -> dict[str, str]:
    condition, place = LISTS[list]
    return {"LIST": condition, "PLACE": place}


class ListReads:
    """The reads of the lists. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def sight(self, view: ListsView) -> ViewContents:
        """The contents of a view of the unfinished jobs."""
        sight = await self._lanes.views(see, view)
        for window in sight.windows.values():
            self._lanes.shown(window.jobs)
        return sight

    async def search(self, wanted: JobSearch) -> FoundJob:
        """The next job of a list that matches, with the window around it."""
        found = await self._lanes.views(search, wanted)
        self._lanes.shown(found.window.jobs)
        return found


READS = (ListReads,)
