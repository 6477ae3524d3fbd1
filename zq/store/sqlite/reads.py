"""The reads of the SQLite store. Each uses the lane in which it delays no shorter read."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from zq.model.filters import Filter
from zq.model.job import ErrorRecord, JobRecord, LastError
from zq.model.lifecycle import Status
from zq.model.outcome import Ending
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.rooms import parts
from zq.store.api import DueDates, Reads
from zq.store.snapshot import MakeReads, reads_by
from zq.store.sqlite import bodies, lookups
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.logs import last_seq, read_log, unreadable_batch
from zq.store.sqlite.queries import load
from zq.store.sqlite.readers import SCANNERS
from zq.store.sqlite.snapshot import SqliteSnapshot

T = TypeVar("T")

WORTH_SHARING = 1000
"""From this many queues on, the search for the oldest jobs is a scan that scanners share."""


@cache
def reads_of_rooms() -> dict[type, MakeReads]:
    """How the reads of each room are made, by the class that says what they are."""
    shared = parts("store_reads", "READS", dict)
    own = parts("sqlite_reads", "READS", dict)
    return reads_by("sqlite", shared, own, load, SqliteSnapshot)


class SqliteReads(Reads):
    """The reads of a store by the connections of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes
        self._looks = lanes.looks
        self._scans = lanes.scans
        self._sweeps = lanes.sweeps
        self._of = lanes.steady_of
        self._dated = lanes.dated
        self._shown = lanes.shown
        self._one = lanes.shown_one
        self._of_rooms: dict[type, Any] = {}

    def of(self, kind: type[T]) -> T:
        found = self._of_rooms.get(kind)
        if found is None:
            found = self._of_rooms[kind] = reads_of_rooms()[kind](self._lanes)
        return cast("T", found)

    async def job(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        return self._one(await self._looks(lookups.get_job, key, reach, self._of(now)))

    async def row(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        return self._one(await self._looks(lookups.get_row, key, reach, self._of(now)))

    async def owner(self, lock: str, reach: Reach, now: int) -> JobRecord | None:
        return self._one(await self._looks(lookups.get_owner, lock, reach, self._of(now)))

    async def ending(self, key: int, reach: Reach, now: int) -> Ending | None:
        return await self._looks(lookups.get_ending, key, reach, self._of(now))

    async def jobs_page(
        self, filter: Filter, after: int, descending: bool, limit: int, now: int, skip: int = 0
    ) -> list[JobRecord]:
        page = (after, descending, limit, self._of(now), skip)
        return self._shown(await self._scans(lookups.list_jobs, self._dated(filter), *page))

    async def leases(self, reach: Reach, limit: int) -> list[JobRecord]:
        return self._shown(await self._scans(lookups.leases, reach, limit))

    async def count(self, filter: Filter, now: int) -> int:
        return await self._scans(lookups.count_jobs, self._dated(filter), self._of(now))

    async def due_between(self, after: int, upto: int) -> DueDates:
        return await self._scans(lookups.due_between, after, upto)

    async def counts(
        self, now: int, queues: Sequence[str] | None = None
    ) -> Counter[tuple[str, Status]]:
        return await self._looks(lookups.visible_counts, self._of(now), queues)

    async def oldest_ready(self, queues: Sequence[str]) -> dict[str, int]:
        if len(queues) < WORTH_SHARING:
            return await self._looks(lookups.oldest_ready, queues)
        share = -(-len(queues) // SCANNERS)
        parts = [queues[at : at + share] for at in range(0, len(queues), share)]
        found: dict[str, int] = {}
        for part in await asyncio.gather(*(self._scans(lookups.oldest_ready, p) for p in parts)):
            found |= part
        return found

    async def key_range(self) -> tuple[int, int]:
        return await self._sweeps(lookups.key_range)

    async def keys(self, filter: Filter, after: int, upto: int, limit: int) -> list[int]:
        return await self._sweeps(lookups.list_keys, self._dated(filter), after, upto, limit)

    async def swept_jobs(self, filter: Filter, after: int, limit: int) -> list[JobRecord]:
        # At time 0, no job's retention is over.
        page = (after, False, limit, 0)
        return self._shown(await self._sweeps(lookups.list_jobs, self._dated(filter), *page))

    async def settings(self, queue: str) -> QueueSettings:
        return await self._looks(lookups.settings, queue)

    async def all_settings(self) -> dict[str, QueueSettings]:
        return await self._looks(lookups.all_settings)

    async def last_errors(self, keys: Sequence[int]) -> dict[int, LastError]:
        return await self._looks(lookups.last_errors, keys)

    async def payloads(self, keys: Sequence[int]) -> dict[int, str]:
        return await self._lanes.deliveries(bodies.payloads, keys)

    async def results(self, keys: Sequence[int]) -> dict[int, str]:
        return await self._looks(bodies.results, keys)

    async def errors_page(
        self, key: int, after: int, descending: bool, limit: int
    ) -> tuple[list[ErrorRecord], bool]:
        read = self._looks if limit == 1 else self._scans
        return await read(lookups.errors_page, key, after, descending, limit)

    async def log_end(self, log: str) -> int:
        return await self._looks(last_seq, log)

    async def log_page(
        self,
        log: str,
        after: int | None,
        upto: int,
        limit: int,
        decode: Callable[[int, str, list[msgspec.Raw]], list[T]],
    ) -> tuple[int, list[T]]:
        def read(connection: sqlite3.Connection) -> tuple[int, list[T]]:
            page = read_log(connection, log, after, upto, limit)
            records: list[T] = []
            for batch in page.batches:
                try:
                    records += decode(*batch)
                except msgspec.MsgspecError:
                    raise unreadable_batch(connection, log, batch.first_seq) from None
            return page.min_seq, records

        return await self._scans(read)
