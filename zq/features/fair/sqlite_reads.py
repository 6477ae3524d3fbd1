"""The reads of fair keys."""

import sqlite3

import msgspec

from zq.features.fair.model import FairKeyState, FairLimit, FairOrder
from zq.features.fair.store import FairReads, FairSums, KeyOfQueue
from zq.store.api import as_json
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

MOST_SUMMED = 10_000
"""The most keys of a queue that are counted. With more, the sums are those of so many."""

MOST_LINES = 5_000
"""The most lines among which those are found that wait longest, and as many of keys at a limit."""

MOST_SORTED = 5_000
"""A page sorts the keys of so many lines, which an index finds, and so many others. That takes some
60 ms. A queue with fewer keys is sorted as a whole."""

_ORDERS = {
    FairOrder.SHARE: ("first_by_turn", "waiting = 0, finish, oldest"),
    FairOrder.WAIT: ("first_by_age", "oldest IS NULL, oldest"),
    FairOrder.DEPTH: ("first_by_age", "waiting DESC, s.fair_key"),
}

_states = msgspec.json.Decoder(list[FairKeyState])


class SqliteFairReads(FairReads):
    """The reads of fair keys by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def keys(self, queue: str, order: FairOrder, skip: int, limit: int) -> list[FairKeyState]:
        return await self._lanes.scans(_keys, queue, order, skip, limit)

    async def key(self, queue: str, key: str) -> tuple[FairKeyState | None, FairLimit | None]:
        return await self._lanes.looks(_key, queue, key)

    async def limits(self, queue: str, keys: list[str]) -> dict[str, FairLimit]:
        return await self._lanes.looks(_limits, queue, keys)

    async def sums(self, queue: str) -> FairSums:
        return await self._lanes.scans(_sums, queue)

    async def longest_waiting(self, limit: int) -> list[KeyOfQueue]:
        return await self._lanes.views(_longest_waiting, limit)


def _keys(
    connection: sqlite3.Connection,
    queue: str,
    order: FairOrder,
    skip: int,
    limit: int,
) -> list[FairKeyState]:
    some, ordered = _ORDERS[order]
    names = {"queue": queue, "most": MOST_SORTED, "skip": skip, "limit": limit}
    return _states_of(connection, some, ordered, names)


def _states_of(
    connection: sqlite3.Connection, some: str, ordered: str, names: dict[str, object]
) -> list[FairKeyState]:
    sql = QUERIES["keys"].replace("SOME", QUERIES[some]).replace("ORDERED", ordered)
    (text,) = connection.execute(sql, names).fetchone()
    return _states.decode(text)


def _key(
    connection: sqlite3.Connection, queue: str, key: str
) -> tuple[FairKeyState | None, FairLimit | None]:
    names = {"queue": queue, "key": key, "skip": 0, "limit": 1}
    found = _states_of(connection, "one", "s.fair_key", names)
    return found[0] if found else None, _limits(connection, queue, [key]).get(key)


def _limits(connection: sqlite3.Connection, queue: str, keys: list[str]) -> dict[str, FairLimit]:
    names = {"queue": queue, "keys": as_json(keys)}
    (text,) = connection.execute(QUERIES["limits"], names).fetchone()
    return {key: FairLimit(*set) for key, *set in msgspec.json.decode(text)}


def _sums(connection: sqlite3.Connection, queue: str) -> FairSums:
    keys, waiting, in_flight, weights = connection.execute(
        QUERIES["sums"], {"queue": queue, "most": MOST_SUMMED}
    ).fetchone()
    return FairSums(keys, int(waiting), int(in_flight), weights)


def _longest_waiting(connection: sqlite3.Connection, limit: int) -> list[KeyOfQueue]:
    names = {"limit": limit, "most": MOST_LINES}
    (text,) = connection.execute(QUERIES["longest_waiting"], names).fetchone()
    return [KeyOfQueue(*row) for row in msgspec.json.decode(text)]


READS = {FairReads: SqliteFairReads}
