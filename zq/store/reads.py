"""The reads of a store, by the lanes of its readers.

Each read uses the lane in which it delays no shorter read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from zq.model.filters import Filter
from zq.model.job import ErrorRecord, JobRecord, LastError
from zq.model.lifecycle import Status
from zq.model.outcome import Ending
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.store import lookups
from zq.store.api import DueDates, Reads
from zq.store.lanes import SCANNERS
from zq.store.logs import last_seq, read_log, unreadable_batch
from zq.store.snapshot import MakeReads, Snapshot, SnapshotLanes

T = TypeVar("T")

WORTH_SHARING = 1000
"""From this many queues on, the search for the oldest jobs is a scan that scanners share."""


class StoredReads(Reads):
    """The reads of the core, and those of rooms."""

    def __init__(
        self,
        lanes: Any,
        snapshot: Callable[[Any], Snapshot],
        of_rooms: Callable[[], Mapping[type, MakeReads]],
    ) -> None:
        """`snapshot` makes one with the core's queries from a connection.

        `of_rooms` says how the reads of rooms are made by the store's own `lanes`.
        """
        self.lanes = SnapshotLanes(lanes, snapshot)
        self._own_lanes = lanes
        self._makes_of_rooms = of_rooms
        self._of_rooms: dict[type, Any] = {}
        self._looks = self.lanes.looks
        self._scans = self.lanes.scans
        self._sweeps = self.lanes.sweeps
        self._of = self.lanes.steady_of
        self._dated = self.lanes.dated
        self._shown = self.lanes.shown
        self._one = self.lanes.shown_one

    def of(self, kind: type[T]) -> T:
        found = self._of_rooms.get(kind)
        if found is None:
            found = self._of_rooms[kind] = self._makes_of_rooms()[kind](self._own_lanes)
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

    async def note(self, name: str) -> str | None:
        return await self._looks(lookups.note, name)

    async def noted(self, name: str, kind: type[T]) -> T | None:
        return await self._looks(lookups.noted, name, kind)

    async def last_errors(self, keys: Sequence[int]) -> dict[int, LastError]:
        return await self._looks(lookups.last_errors, keys)

    async def payloads(self, keys: Sequence[int]) -> dict[int, str]:
        return await self.lanes.deliveries(lookups.payloads, keys)

    async def results(self, keys: Sequence[int]) -> dict[int, str]:
        return await self._looks(lookups.results, keys)

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
        def read(snapshot: Snapshot) -> tuple[int, list[T]]:
            page = read_log(snapshot, log, after, upto, limit)
            records: list[T] = []
            for batch in page.batches:
                try:
                    records += decode(*batch)
                except msgspec.MsgspecError:
                    raise unreadable_batch(snapshot, log, batch.first_seq) from None
            return page.min_seq, records

        return await self._scans(read)
