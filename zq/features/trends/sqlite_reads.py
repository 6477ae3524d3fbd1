"""The reads of trends."""

import sqlite3

import msgspec

from zq.features.trends.model import TrendAt
from zq.features.trends.model_types import TypeTrendAt
from zq.features.trends.store import TrendReads
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.lookups import text_of
from zq.store.sqlite.queries import load

_of_queues = msgspec.json.Decoder(list[TrendAt])
_of_types = msgspec.json.Decoder(list[TypeTrendAt])


class SqliteTrendReads(TrendReads):
    """The reads of trends by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def trends(self, queue: str, length: int, since: int) -> list[TrendAt]:
        return await self._lanes.looks(_trends, queue, length, since)

    async def type_trends(
        self, queue: str | None, type: str | None, length: int, since: int, step: int
    ) -> list[TypeTrendAt]:
        return await self._lanes.views(_type_trends, queue, type, length, since, step)


def _trends(connection: sqlite3.Connection, queue: str, length: int, since: int) -> list[TrendAt]:
    """The trends of a queue that begin at a time or later, in their order."""
    asked = {"queue": queue, "length": length, "since": since}
    return _of_queues.decode(
        text_of(connection, load("zq.features.trends.sqlite_tick")["trends"], asked)
    )


def _type_trends(
    connection: sqlite3.Connection,
    queue: str | None,
    type: str | None,
    length: int,
    since: int,
    step: int,
) -> list[TypeTrendAt]:
    """The trends of types that begin at a time or later, added up in steps."""
    asked: dict[str, object] = {
        "queue": queue,
        "type": type,
        "length": length,
        "since": since,
        "step": step,
    }
    return _of_types.decode(
        text_of(connection, load("zq.features.trends.sqlite_tick")["type_trends"], asked)
    )


READS = {TrendReads: SqliteTrendReads}
