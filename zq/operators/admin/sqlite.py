"""The queries of windows on lists of unfinished jobs, as functions of a reader's connection.

The head and the tail of the ready and of the scheduled jobs come from an index that has their
order, as many rows as requested. A window further inside costs one step over an index entry for
each job before it, or after it if those are fewer. Jobs in flight have no such index, since every
take would have to write it: they are sorted each time. A caller that reads again and again should
mind how long the last read took.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
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
    Sight,
    WindowRequest,
)
from zq.store.api import as_json
from zq.store.sqlite.lookups import found_jobs
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

LAST_KEY = 2**63 - 1

_LISTS = {
    ListName.READY: (f"status = {Status.READY.value} AND held = 0", "priority"),
    ListName.IN_FLIGHT: (
        f"status = {Status.IN_FLIGHT.value} AND status <> {Status.READY.value}",
        "dequeued_at",
    ),
    ListName.SCHEDULED: (f"status = {Status.SCHEDULED.value}", "ready_at"),
}
"""The condition and the first column of the order. SQLite recognises its indexes by these words."""


class _Spot(NamedTuple):
    """The place of a job in the order of its list."""

    place: int
    key: int


BEFORE_ALL = _Spot(-1, -1)
BEHIND_ALL = _Spot(MAX_TIME, LAST_KEY)


def see(connection: sqlite3.Connection, view: ListsView) -> Sight:
    """Read the contents of a view."""
    totals = _totals(connection)
    windows = {list: _window(connection, list, view.of(list), totals[list]) for list in ListName}
    return Sight(windows, totals)


def search(connection: sqlite3.Connection, wanted: JobSearch) -> FoundJob:
    """Find the next job that matches, and the window around it."""
    totals = _totals(connection)
    list, after = wanted.list, wanted.after
    spot = None if after is None else _spot_of(connection, list, after)
    if wanted.direction is Direction.LOCATE:
        key = None if spot is None else spot.key
    else:
        key = _next(connection, wanted, spot)
    found = None if key is None else _spot_of(connection, list, key)
    if found is None:
        return FoundJob(None, NO_JOBS, totals)
    position = _position(connection, list, found)
    window = _around(connection, list, found, position, wanted.limit, totals[list])
    return FoundJob(position, window, totals)


def _window(
    connection: sqlite3.Connection, list: ListName, request: WindowRequest, total: int
) -> JobWindow:
    anchor, limit = request.anchor, request.limit
    if not total:
        return NO_JOBS
    kind: AnchorKind | Fallback = anchor.kind
    if anchor.kind is AnchorKind.AROUND:
        spot = None if anchor.key is None else _spot_of(connection, list, anchor.key)
        if spot is not None:
            position = _position(connection, list, spot)
            return _around(connection, list, spot, position, limit, total)
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
    return _rows(connection, list, first, limit, total)


def _around(
    connection: sqlite3.Connection,
    list: ListName,
    spot: _Spot,
    position: int,
    limit: int,
    total: int,
) -> JobWindow:
    first = max(min(position - limit // 2, total - limit), 0)
    window = _rows(connection, list, first, limit, total)
    window.anchor = spot.key
    return window


def _rows(
    connection: sqlite3.Connection, list: ListName, first: int, limit: int, total: int
) -> JobWindow:
    """The rows from a position on, counted from the nearer end."""
    rows = max(min(limit, total - first), 0)
    behind = total - first - rows
    if first <= behind:
        keys = _keys(connection, "from_head", list, rows, first)
    else:
        keys = _keys(connection, "from_tail", list, rows, behind)
    jobs = found_jobs(connection, _sql("jobs", list), {"keys": as_json(keys)})
    jobs.sort(key=attrgetter(_LISTS[list][1], "key"))
    return JobWindow(jobs, first, total)


def _keys(
    connection: sqlite3.Connection, name: str, list: ListName, limit: int, offset: int
) -> Sequence[int]:
    parameters = {"limit": limit, "offset": offset}
    return [key for (key,) in connection.execute(_sql(name, list), parameters)]


def _spot_of(connection: sqlite3.Connection, list: ListName, key: int) -> _Spot | None:
    row = connection.execute(_sql("place_of", list), {"key": key}).fetchone()
    return None if row is None else _Spot(row[0], key)


def _position(connection: sqlite3.Connection, list: ListName, spot: _Spot) -> int:
    count: int = connection.execute(_sql("count_before", list), spot._asdict()).fetchone()[0]
    return count


def _next(connection: sqlite3.Connection, wanted: JobSearch, spot: _Spot | None) -> int | None:
    is_forward = wanted.direction is Direction.FORWARD
    spot = spot or (BEFORE_ALL if is_forward else BEHIND_ALL)
    parameters: dict[str, object] = spot._asdict()
    conditions = ["true"]
    for column, words in (("queue", wanted.queues), ("type", wanted.types)):
        if words:
            named = {f"{column}_{index}": word for index, word in enumerate(words)}
            among = " OR ".join(f"instr({column}, :{name}) > 0" for name in named)
            conditions.append(f"({among})")
            parameters |= named
    way = "next" if is_forward else "previous"
    for name in (f"{way}_beside", f"{way}_beyond"):
        sql = _sql(name, wanted.list).replace("MATCHES", " AND ".join(conditions))
        row = connection.execute(sql, parameters).fetchone()
        if row is not None:
            return int(row[0])
    return None


def _totals(connection: sqlite3.Connection) -> dict[ListName, int]:
    counts = dict(connection.execute(QUERIES["totals"]).fetchall())
    return {list: counts.get(status.value, 0) for list, status in STATUS_OF.items()}


@cache
def _sql(name: str, list: ListName) -> str:
    condition, place = _LISTS[list]
    return QUERIES[name].replace("LIST", condition).replace("PLACE", place)
