"""The verbs that read the jobs that match a filter.

The store decides the plain part of a filter at once. Words and programs need a search, which goes
slice by slice.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from zq.model.clock import Clock
from zq.model.errors import Unprocessable
from zq.model.filters import Filter, counted, is_counted
from zq.model.job import MAX_TIME, JobRecord, LastError
from zq.service.queues import QueueCounts
from zq.store.api import Store
from zq.store.snapshot import PAGE_BYTES


class Page(NamedTuple):
    """Jobs in order, and whether there are more after them.

    `reached` is the key of the last job that was looked at, if the search broke off there.
    """

    jobs: list[JobRecord]
    more: bool
    reached: int | None = None


class JobCount(NamedTuple):
    """How many jobs match, up to the key `reached` if the search broke off there."""

    jobs: int
    reached: int | None = None


BATCH = 1000
"""The jobs of a search that are counted at a time."""


class SlicedSearch(Protocol):
    """A search that goes slice by slice, from the key `reached` on."""

    @property
    def reached(self) -> int:
        """The key of the last job that was looked at."""

    async def keys(self) -> tuple[list[int], bool]:
        """The keys of the next jobs with all words, and false if no job was left to look at."""

    async def jobs(self, most: int) -> tuple[list[JobRecord], bool]:
        """The next matching jobs with their payloads, and false if no job was left to look at."""

    def is_over(self) -> bool:
        """True if it has gone as far as one request may. Raises `ReadTimeout`."""


BeginSearch = Callable[[Filter, int, bool, float | None], Awaitable[SlicedSearch]]
"""Begins the search of a filter from a key on, descending or not, with a patience in seconds."""


class Listing:
    """Pages and counts. A filter that is not plain needs a search, as `searching` begins it."""

    def __init__(self, store: Store, clock: Clock, counts: QueueCounts) -> None:
        self.searching: BeginSearch = _cannot_search
        self._reads = store.reads
        self._clock = clock
        self._counts = counts

    async def page(
        self,
        filter: Filter,
        after: int,
        descending: bool,
        limit: int,
        patience: float | None = None,
    ) -> Page:
        """Up to `limit` matching jobs beyond the key `after`, with payloads, in order of keys.

        There are fewer if payloads are large. A search by words or by a program also ends after
        `patience` (seconds), where that is given, and one by words after `MOST_LOOKED` jobs. Raises
        `ReadTimeout`, `ReadersBusy`, or the errors of `JqFilter` if the filter has a program.
        """
        if not filter.is_plain:
            return await self._matching(filter, after, descending, limit, patience)
        jobs = await self._read(filter, after, descending, limit + 1)
        if len(jobs) > limit:
            return Page(jobs[:limit], True)
        if not jobs or sum(job.weight for job in jobs) < PAGE_BYTES // 2:
            return Page(jobs, False)
        # Large payloads may have ended the page early.
        return Page(jobs, bool(await self._read(filter, jobs[-1].key, descending, 1)))

    async def page_at(self, filter: Filter, skip: int, limit: int) -> list[JobRecord]:
        """Up to `limit` matching jobs, the newest first, after the first `skip` of them.

        The filter is plain. There are fewer if payloads are large. Raises the errors of `page`.
        """
        now = self._clock.now_ms()
        return await self._reads.jobs_page(filter, MAX_TIME, True, limit, now, skip)

    async def last_errors(self, jobs: Sequence[JobRecord]) -> dict[int, LastError]:
        """The latest failure, by key, of each of the jobs that has one."""
        failed = [job.key for job in jobs if job.attempts]
        return await self._reads.last_errors(failed) if failed else {}

    async def count(self, filter: Filter) -> int:
        """How many jobs match. Raises the errors of `page`."""
        if is_counted(filter):
            return counted(await self._counts.read(), filter)
        if filter.is_plain:
            return await self._reads.count(filter, self._clock.now_ms())
        part = await self.count_beyond(filter, -1)
        total = part.jobs
        while part.reached is not None:
            part = await self.count_beyond(filter, part.reached)
            total += part.jobs
        return total

    async def count_beyond(
        self, filter: Filter, after: int, patience: float | None = None
    ) -> JobCount:
        """How many jobs beyond the key `after` match words or a program. It ends as a page does.

        Raises the errors of `page`.
        """
        search = await self.searching(filter, after, False, patience)
        total = 0
        while True:
            if filter.program is None:
                keys, more = await search.keys()
                total += len(keys)
            else:
                jobs, more = await search.jobs(BATCH)
                total += len(jobs)
            if not more:
                return JobCount(total)
            if search.is_over():
                return JobCount(total, search.reached)

    async def _matching(
        self,
        filter: Filter,
        after: int,
        descending: bool,
        limit: int,
        patience: float | None,
    ) -> Page:
        search = await self.searching(filter, after, descending, patience)
        found: list[JobRecord] = []
        weight = 0
        while True:
            jobs, more = await search.jobs(limit + 1 - len(found))
            for job in jobs:
                weight += job.weight
                if found and (len(found) == limit or weight > PAGE_BYTES):
                    return Page(found, True)
                found.append(job)
            if not more:
                return Page(found, False)
            if search.is_over():
                return Page(found, True, search.reached)

    async def _read(
        self, filter: Filter, after: int, descending: bool, limit: int
    ) -> list[JobRecord]:
        now = self._clock.now_ms()
        return await self._reads.jobs_page(filter, after, descending, limit, now)


async def _cannot_search(_filter: Filter, _after: int, _down: bool, _patience: float | None) -> Any:
    raise Unprocessable("this server searches neither by words nor by programs")
