"""The reads of fair keys."""

from zq.features.fair.model import FairKeyState, FairLimit, FairOrder
from zq.features.fair.store import FairReads, FairSums, KeyOfQueue
from zq.store.postgres.connection import Connection
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes

QUERIES = load(__name__)

MOST_SUMMED = 10_000
"""The most keys of a queue that are counted. With more, the sums are those of so many."""

MOST_LINES = 5_000
"""The most lines among which those are found that wait longest, and as many of keys at a limit."""

_ORDERS = {
    FairOrder.SHARE: "waiting = 0, finish, oldest NULLS FIRST",
    FairOrder.WAIT: "oldest",
    FairOrder.DEPTH: "waiting DESC, s.fair_key",
}


class PostgresFairReads(FairReads):
    """The reads of fair keys by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._lanes = lanes

    async def keys(self, queue: str, order: FairOrder, skip: int, limit: int) -> list[FairKeyState]:
        return await self._lanes.scans(_keys, queue, None, order, skip, limit)

    async def key(self, queue: str, key: str) -> tuple[FairKeyState | None, FairLimit | None]:
        return await self._lanes.looks(_key, queue, key)

    async def limits(self, queue: str, keys: list[str]) -> dict[str, FairLimit]:
        return await self._lanes.looks(_limits, queue, keys)

    async def sums(self, queue: str) -> FairSums:
        asked = {"queue": queue, "most": MOST_SUMMED}
        (row,) = await self._lanes.scans(rows_of, QUERIES["sums"], asked)
        return FairSums(*row)

    async def longest_waiting(self, limit: int) -> list[KeyOfQueue]:
        asked = {"limit": limit, "most": MOST_LINES}
        found = await self._lanes.views(rows_of, QUERIES["longest_waiting"], asked)
        return [KeyOfQueue(*row) for row in found]


def _keys(
    connection: Connection, queue: str, key: str | None, order: FairOrder, skip: int, limit: int
) -> list[FairKeyState]:
    sql = QUERIES["keys"].replace("ORDERED", _ORDERS[order])
    asked = {"queue": queue, "key": key, "skip": skip, "limit": limit}
    return [FairKeyState(*row) for row in rows_of(connection, sql, asked)]


def _key(
    connection: Connection, queue: str, key: str
) -> tuple[FairKeyState | None, FairLimit | None]:
    found = _keys(connection, queue, key, FairOrder.SHARE, 0, 1)
    return found[0] if found else None, _limits(connection, queue, [key]).get(key)


def _limits(connection: Connection, queue: str, keys: list[str]) -> dict[str, FairLimit]:
    asked = {"queue": queue, "keys": keys}
    found = rows_of(connection, QUERIES["limits"], asked)
    return {key: FairLimit(*limit) for key, *limit in found}


READS = {FairReads: PostgresFairReads}
