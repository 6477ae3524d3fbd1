"""The reads of lanes."""

import sqlite3

import msgspec

from zq.features.forward.model import ForwardLane
from zq.features.forward.store import LaneReads, UnderWay
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load

QUERIES = load("zq.features.forward.sqlite_tick") | load(__name__)

_stored = msgspec.json.Decoder(list[ForwardLane])


class SqliteLaneReads(LaneReads):
    """The reads of lanes by the lanes of a pool of readers."""

    def __init__(self, readers: ReadLanes) -> None:
        self._readers = readers

    async def lanes(self) -> list[ForwardLane]:
        return await self._readers.looks(_lanes)

    async def under_way(self) -> dict[int, UnderWay]:
        return await self._readers.looks(_under_way)


def _lanes(connection: sqlite3.Connection) -> list[ForwardLane]:
    (text,) = connection.execute(QUERIES["lanes"]).fetchone()
    return _stored.decode(text)


def _under_way(connection: sqlite3.Connection) -> dict[int, UnderWay]:
    (text,) = connection.execute(QUERIES["under_way"]).fetchone()
    return {lane: UnderWay(*found) for lane, *found in msgspec.json.decode(text)}


READS = {LaneReads: SqliteLaneReads}
