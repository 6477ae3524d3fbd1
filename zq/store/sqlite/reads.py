"""The reads of the SQLite store. Each uses the lane in which it delays no shorter read.

The store compares the ends of durations in steady time. These methods turn dates into steady times
where they enter, and make the times of jobs dates where they leave.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from zq.features.budgets.model import BudgetState
from zq.features.failures.model import FailureRow
from zq.features.search import sqlite as search
from zq.features.search.store import Look
from zq.features.sweeps.model import StoredSweep
from zq.features.trends.model import TrendAt
from zq.features.trends.model_types import TypeTrendAt
from zq.features.waits import sqlite as waits
from zq.features.waits.model import BudgetWait, OpenGroup, WaitingJob
from zq.features.waits.model_queue import BudgetLine, StoredWaits
from zq.features.waits.store import DueDates, TimePlace
from zq.model.clock import SteadyClock
from zq.model.filters import Filter
from zq.model.job import ErrorRecord, JobRecord, LastError, show_dates
from zq.model.lifecycle import Status
from zq.model.outcome import Ending
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.operators.admin import sqlite as windows
from zq.operators.admin.model import FoundJob, JobSearch, ListsView, Sight
from zq.store.api import Reads
from zq.store.sqlite import bodies, lookups
from zq.store.sqlite.logs import last_seq, read_log, unreadable_batch
from zq.store.sqlite.readers import SCANNERS, ReaderPool

T = TypeVar("T")

WORTH_SHARING = 1000
"""From this many queues on, the search for the oldest jobs is a scan that scanners share."""


class SqliteReads(Reads):
    """The reads of a store by the connections of a pool."""

    def __init__(self, pool: ReaderPool, steady: SteadyClock) -> None:
        self._steady = steady
        self._looks = pool.looks.read
        self._scans = pool.scans.read
        self._sweeps = pool.sweeps.read
        self._deliveries = pool.deliveries.read
        self._views = pool.views.read

    async def job(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        return self._one(await self._looks(lookups.get_job, key, reach, self._of(now)))

    async def row(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        return self._one(await self._looks(lookups.get_row, key, reach, self._of(now)))

    async def waiting(self, key: int, reach: Reach, now: int) -> WaitingJob | None:
        found = await self._looks(waits.waiting_job, key, reach, self._of(now))
        if found is None:
            return None
        self._one(found.job)
        return found._replace(budgets=self._dated(found.budgets))

    async def stored_waits(self, queue: str, now: int) -> StoredWaits:
        found = await self._looks(waits.stored_waits, queue, self._of(now))
        return found._replace(lines=[self._line(line) for line in found.lines])

    async def unpaid_lines(self, most: int, now: int) -> list[BudgetLine]:
        found = await self._looks(waits.unpaid_lines, None, most, self._of(now))
        return [self._line(line) for line in found]

    def _line(self, line: BudgetLine) -> BudgetLine:
        return line._replace(waits=self._dated(line.waits))

    def _dated(self, found: Sequence[BudgetWait]) -> list[BudgetWait]:
        ahead = self._steady.ahead
        return [
            wait if wait.pays_at is None else wait._replace(pays_at=wait.pays_at - ahead)
            for wait in found
        ]

    async def owner(self, lock: str, reach: Reach, now: int) -> JobRecord | None:
        return self._one(await self._looks(lookups.get_owner, lock, reach, self._of(now)))

    async def open_hosts(
        self, batch_keys: Sequence[str], now: int
    ) -> dict[str, tuple[int, JobRecord] | None]:
        hosts = await self._looks(lookups.open_hosts, batch_keys, self._of(now))
        self._shown([found[1] for found in hosts.values() if found is not None])
        return hosts

    async def ending(self, key: int, reach: Reach, now: int) -> Ending | None:
        return await self._looks(lookups.get_ending, key, reach, self._of(now))

    async def jobs_page(
        self, filter: Filter, after: int, descending: bool, limit: int, now: int, skip: int = 0
    ) -> list[JobRecord]:
        page = (after, descending, limit, self._of(now), skip)
        return self._shown(await self._scans(lookups.list_jobs, filter, *page))

    async def scheduled(self, reach: Reach, after: TimePlace, limit: int) -> list[JobRecord]:
        ahead = self._ahead()
        found = await self._scans(waits.scheduled, reach, after, limit, ahead)
        show_dates(found, ahead)
        return found

    async def leases(self, reach: Reach, limit: int) -> list[JobRecord]:
        return self._shown(await self._scans(waits.leases, reach, limit))

    async def running_long(self, reach: Reach, before: int, limit: int) -> list[JobRecord]:
        return self._shown(await self._scans(waits.running_long, reach, before, limit))

    async def groups(self, queue: str, after: str, limit: int) -> list[OpenGroup]:
        return await self._scans(waits.groups, queue, after, limit)

    async def count(self, filter: Filter, now: int) -> int:
        return await self._scans(lookups.count_jobs, filter, self._of(now))

    async def due_between(self, after: int, upto: int) -> DueDates:
        return await self._scans(waits.due_between, after, upto)

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
        return await self._sweeps(lookups.list_keys, filter, after, upto, limit)

    async def swept_jobs(self, filter: Filter, after: int, limit: int) -> list[JobRecord]:
        # At time 0, no job's retention is over.
        return self._shown(await self._sweeps(lookups.list_jobs, filter, after, False, limit, 0))

    async def look(self, filter: Filter, after: int, descending: bool, now: int) -> Look:
        return await self._scans(search.look, filter, after, descending, self._of(now))

    async def swept_look(self, filter: Filter, after: int) -> Look:
        return await self._sweeps(search.look, filter, after, False, 0)

    async def places(self, keys: Sequence[int]) -> Counter[tuple[str, Status]]:
        return await self._sweeps(search.places, keys)

    async def types(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        return await self._scans(search.sample, "types", queue, reach, self._of(now))

    async def payload_keys(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        return await self._scans(search.sample, "payload_keys", queue, reach, self._of(now))

    async def sight(self, view: ListsView) -> Sight:
        sight = await self._views(windows.see, view)
        for window in sight.windows.values():
            self._shown(window.jobs)
        return sight

    async def search(self, wanted: JobSearch) -> FoundJob:
        found = await self._views(windows.search, wanted)
        self._shown(found.window.jobs)
        return found

    async def settings(self, queue: str) -> QueueSettings:
        return await self._looks(lookups.settings, queue)

    async def all_settings(self) -> dict[str, QueueSettings]:
        return await self._looks(lookups.all_settings)

    async def last_errors(self, keys: Sequence[int]) -> dict[int, LastError]:
        return await self._looks(lookups.last_errors, keys)

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        return await self._looks(lookups.budgets, key, self._of(now))

    async def payloads(self, keys: Sequence[int]) -> dict[int, str]:
        return await self._deliveries(bodies.payloads, keys)

    async def results(self, keys: Sequence[int]) -> dict[int, str]:
        return await self._looks(bodies.results, keys)

    async def failures(self, since: int, bar: int, length: int) -> list[FailureRow]:
        return await self._views(lookups.failures, since, bar, length)

    async def dead_of(
        self, signatures: Sequence[str], queues: Sequence[str] | None, most: int
    ) -> dict[str, tuple[int, bool]]:
        return await self._views(lookups.dead_of, signatures, queues, most)

    async def trends(self, queue: str, length: int, since: int) -> list[TrendAt]:
        return await self._looks(lookups.trends, queue, length, since)

    async def type_trends(
        self, queue: str | None, type: str | None, length: int, since: int, step: int
    ) -> list[TypeTrendAt]:
        return await self._views(lookups.type_trends, queue, type, length, since, step)

    async def sweeps(self, before: int, limit: int) -> list[StoredSweep]:
        return await self._looks(lookups.sweeps, before, limit)

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

    def _of(self, now: int) -> int:
        """The steady time of a date of this moment."""
        return now + self._ahead()

    def _ahead(self) -> int:
        """How far steady time is ahead, also right after the clock was set."""
        self._steady.look()
        return self._steady.ahead

    def _shown(self, jobs: list[JobRecord]) -> list[JobRecord]:
        """The same jobs, with dates."""
        show_dates(jobs, self._steady.ahead)
        return jobs

    def _one(self, job: JobRecord | None) -> JobRecord | None:
        if job is not None:
            show_dates([job], self._steady.ahead)
        return job
