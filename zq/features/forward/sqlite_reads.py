"""The reads of lanes."""

import sqlite3
from collections.abc import Sequence

import msgspec

from zq.features.forward.model import ALL_KEYS, ForwardLane
from zq.features.forward.store import LaneReads, NewJobs, UnderWay
from zq.store.api import as_json
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

    async def new_jobs(self, queues: Sequence[str], first: int) -> dict[str, NewJobs]:
        return await self._readers.scans(_new_jobs, queues, first)

    async def waiting_bytes(self, queues: Sequence[str], span: range = ALL_KEYS) -> int:
        return await self._readers.scans(_waiting_bytes, queues, span)

    async def oldest_jobs(
        self, queues: Sequence[str], upto: int, limit: int
    ) -> list[tuple[int, int]]:
        return await self._readers.scans(_oldest_jobs, queues, upto, limit)


def _lanes(connection: sqlite3.Connection) -> list[ForwardLane]:
    (text,) = connection.execute(QUERIES["lanes"]).fetchone()
    return _stored.decode(text)


def _under_way(connection: sqlite3.Connection) -> dict[int, UnderWay]:
    (text,) = connection.execute(QUERIES["under_way"]).fetchone()
    return {lane: UnderWay(*found) for lane, *found in msgspec.json.decode(text)}


def _new_jobs(
    connection: sqlite3.Connection, queues: Sequence[str], first: int
) -> dict[str, NewJobs]:
    names = {"queues": as_json(queues), "first": first}
    (text,) = connection.execute(QUERIES["new_jobs"], names).fetchone()
    found = msgspec.json.decode(text, type=list[tuple[str, int, int]])
    return {queue: NewJobs(jobs, oldest) for queue, jobs, oldest in found}


def _waiting_bytes(connection: sqlite3.Connection, queues: Sequence[str], span: range) -> int:
    names = {"queues": as_json(queues), "first": span.start, "end": span.stop}
    found: int = connection.execute(QUERIES["waiting_bytes"], names).fetchone()[0]
    return found


def _oldest_jobs(
    connection: sqlite3.Connection, queues: Sequence[str], upto: int, limit: int
) -> list[tuple[int, int]]:
    names = {"queues": as_json(queues), "upto": upto, "limit": limit}
    (text,) = connection.execute(QUERIES["oldest_jobs"], names).fetchone()
    return msgspec.json.decode(text, type=list[tuple[int, int]])


READS = {LaneReads: SqliteLaneReads}
