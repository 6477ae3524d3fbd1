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
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.model.settling import Ending
from zq.store import lookups
from zq.store.lanes import SCANNERS
from zq.store.logs import last_seq, read_log, unreadable_batch
from zq.store.lookups import DueDates
from zq.store.snapshot import MakeReads, Snapshot, SnapshotLanes

T = TypeVar("T")

WORTH_SHARING = 1000
"""From this many queues on, the search for the oldest jobs is a scan that scanners share."""


class Reads:
    """The reads of the core, and those of rooms: each sees one moment, which is on the disk.

    All times are dates, also those of jobs. A `now` is the wall time of this moment.

    A read that takes too long raises `ReadTimeout`. If too many long reads wait, the next one
    raises `ReadersBusy`. Unreadable rows are set aside, and the answer has the rest.
    """

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
        """The reads of a room, by the class that says what they are."""
        found = self._of_rooms.get(kind)
        if found is None:
            found = self._of_rooms[kind] = self._makes_of_rooms()[kind](self._own_lanes)
        return cast("T", found)

    async def job(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        """One job with its payload and result, if it is within reach and its retention lasts."""
        return self._one(await self._looks(lookups.get_job, key, reach, self._of(now)))

    async def row(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        """One job without a large payload or result."""
        return self._one(await self._looks(lookups.get_row, key, reach, self._of(now)))

    async def owner(self, lock: str, reach: Reach, now: int) -> JobRecord | None:
        """The job that owns a unique key, named by its lock, with its payload and result."""
        return self._one(await self._looks(lookups.get_owner, lock, reach, self._of(now)))

    async def ending(self, key: int, reach: Reach, now: int) -> Ending | None:
        """The outcome of a job, or its present state; None if `job` would return None."""
        return await self._looks(lookups.get_ending, key, reach, self._of(now))

    async def jobs_page(
        self, filter: Filter, after: int, descending: bool, limit: int, now: int, skip: int = 0
    ) -> list[JobRecord]:
        """Up to `limit` jobs beyond `after` with their payloads; fewer if they exceed `PAGE_BYTES`.

        The first `skip` jobs are left out.
        """
        page = (after, descending, limit, self._of(now), skip)
        return self._shown(await self._scans(lookups.list_jobs, self._dated(filter), *page))

    async def leases(self, reach: Reach, limit: int) -> list[JobRecord]:
        """The jobs whose leases end first, without large payloads."""
        return self._shown(await self._scans(lookups.leases, reach, limit))

    async def count(self, filter: Filter, now: int) -> int:
        """How many jobs match. `counts` is much faster for the filters that it can answer."""
        return await self._scans(lookups.count_jobs, self._dated(filter), self._of(now))

    async def due_between(self, after: int, upto: int) -> DueDates:
        """How many dates there are with ``after < date <= upto``."""
        return await self._scans(lookups.due_between, after, upto)

    async def counts(
        self, now: int, queues: Sequence[str] | None = None
    ) -> Counter[tuple[str, Status]]:
        """How many jobs each queue has in each status, except those whose retention is over.

        `queues` limits the answer to some of them.
        """
        return await self._looks(lookups.visible_counts, self._of(now), queues)

    async def oldest_ready(self, queues: Sequence[str]) -> dict[str, int]:
        """When the longest waiting ready job became ready, for each queue that has one."""
        if len(queues) < WORTH_SHARING:
            return await self._looks(lookups.oldest_ready, queues)
        share = -(-len(queues) // SCANNERS)
        parts = [queues[at : at + share] for at in range(0, len(queues), share)]
        found: dict[str, int] = {}
        for part in await asyncio.gather(*(self._scans(lookups.oldest_ready, p) for p in parts)):
            found |= part
        return found

    async def key_range(self) -> tuple[int, int]:
        """The lowest and the highest key of a stored job; both 0 if there is none."""
        return await self._sweeps(lookups.key_range)

    async def keys(self, filter: Filter, after: int, upto: int, limit: int) -> list[int]:
        """Up to `limit` keys of matching jobs with ``after < key <= upto``, for a sweep.

        Jobs whose retention is over are included.
        """
        return await self._sweeps(lookups.list_keys, self._dated(filter), after, upto, limit)

    async def swept_jobs(self, filter: Filter, after: int, limit: int) -> list[JobRecord]:
        # At time 0, no job's retention is over.
        """Up to `limit` such jobs beyond `after` with their payloads."""
        page = (after, False, limit, 0)
        return self._shown(await self._sweeps(lookups.list_jobs, self._dated(filter), *page))

    async def settings(self, queue: str) -> QueueSettings:
        """The settings of a queue."""
        return await self._looks(lookups.settings, queue)

    async def all_settings(self) -> dict[str, QueueSettings]:
        """All settings of queues, by queue."""
        return await self._looks(lookups.all_settings)

    async def note(self, name: str) -> str | None:
        """A text about the whole server, as `WriteNote` has stored it."""
        return await self._looks(lookups.note, name)

    async def noted(self, name: str, kind: type[T]) -> T | None:
        """A note that is JSON, as a value of its kind. One that is none is set aside."""
        return await self._looks(lookups.noted, name, kind)

    async def last_errors(self, keys: Sequence[int]) -> dict[int, LastError]:
        """The latest failure of each job that has one."""
        return await self._looks(lookups.last_errors, keys)

    async def payloads(self, keys: Sequence[int]) -> dict[int, str]:
        """Large payloads of jobs that are being delivered. Deleted jobs are missing."""
        return await self.lanes.deliveries(lookups.payloads, keys)

    async def results(self, keys: Sequence[int]) -> dict[int, str]:
        """Large results by key. Deleted jobs are missing."""
        return await self._looks(lookups.results, keys)

    async def errors_page(
        self, key: int, after: int, descending: bool, limit: int
    ) -> tuple[list[ErrorRecord], bool]:
        """Up to `limit` failures of a job beyond the attempt `after`, and whether more follow.

        There are fewer if their texts are large.
        """
        read = self._looks if limit == 1 else self._scans
        return await read(lookups.errors_page, key, after, descending, limit)

    async def log_end(self, log: str) -> int:
        """The number of the last record of a log; 0 if there is none."""
        return await self._looks(last_seq, log)

    async def log_page(
        self,
        log: str,
        after: int | None,
        upto: int,
        limit: int,
        decode: Callable[[int, str, list[msgspec.Raw]], list[T]],
    ) -> tuple[int, list[T]]:
        """The oldest number of a log, and up to `limit` records with ``after < seq <= upto``.

        If `after` is None, they begin with the oldest record. `decode` makes the records of one
        batch from its first number, the fields that its records share, and the records. It runs in
        another thread, since a page takes a while. Raises `RecordsGone` or `CursorAhead`.
        """

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
