"""The verbs that read the jobs that match a filter.

The store decides most of a filter. It cannot run a jq program: for that, payloads are read batch by
batch, and a child process decides.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from zq.engine.jq.filter import JqFilter
from zq.model.clock import Clock
from zq.model.errors import ReadTimeout
from zq.model.filters import Filter, counted, is_counted
from zq.model.job import MAX_TIME, JobRecord
from zq.service.queues import QueueCounts
from zq.store.api import PAGE_BYTES, Store

BATCH = 1000
"""One call of the jq process decides so many payloads."""


class Page(NamedTuple):
    """Jobs in order, and whether there are more after them.

    `reached` is the key of the last job that was looked at, if the search broke off there.
    """

    jobs: list[JobRecord]
    more: bool
    reached: int | None = None


class Listing:
    """Pages and counts. `timeout` (seconds) limits one whole request."""

    def __init__(
        self, store: Store, clock: Clock, counts: QueueCounts, filter: JqFilter, timeout: float
    ) -> None:
        self._reads = store.reads
        self._clock = clock
        self._counts = counts
        self._filter = filter
        self._timeout = timeout

    async def page(
        self,
        filter: Filter,
        after: int,
        descending: bool,
        limit: int,
        patience: float | None = None,
    ) -> Page:
        """Up to `limit` matching jobs beyond the key `after`, with payloads, in order of keys.

        There are fewer if payloads are large, or if a search by a program takes longer than
        `patience` (seconds), where that is given. Raises `ReadTimeout`, `ReadersBusy`, or the
        errors of `JqFilter` if the filter has a program.
        """
        if filter.program is not None:
            place = (filter, filter.program, after, descending, limit)
            return await self._matching(*place, patience)
        jobs = await self._read(filter, after, descending, limit + 1)
        if len(jobs) > limit:
            return Page(jobs[:limit], True)
        if not jobs or sum(job.weight for job in jobs) < PAGE_BYTES // 2:
            return Page(jobs, False)
        # Large payloads may have ended the page early.
        return Page(jobs, bool(await self._read(filter, jobs[-1].key, descending, 1)))

    async def page_at(self, filter: Filter, skip: int, limit: int) -> list[JobRecord]:
        """Up to `limit` matching jobs, the newest first, after the first `skip` of them.

        The filter has no program. There are fewer if payloads are large. Raises the errors of
        `page`.
        """
        now = self._clock.now_ms()
        return await self._reads.jobs_page(filter, MAX_TIME, True, limit, now, skip)

    async def last_errors(self, jobs: Sequence[JobRecord]) -> dict[int, str]:
        """The message of the latest failure, by key, for each of the jobs that has one."""
        failed = [job.key for job in jobs if job.attempts]
        return await self._reads.last_errors(failed) if failed else {}

    async def count(self, filter: Filter) -> int:
        """How many jobs match. Raises the errors of `page`."""
        if is_counted(filter):
            return counted(await self._counts.read(), filter)
        if filter.program is None:
            return await self._reads.count(filter, self._clock.now_ms())
        await self._filter.check(filter.program)
        total, after = 0, -1
        deadline = self._clock.monotonic() + self._timeout
        while jobs := await self._read(filter, after, False, BATCH):
            total += sum(await self._decide(filter.program, jobs))
            after = jobs[-1].key
            self._check(deadline)
        return total

    async def _matching(
        self,
        filter: Filter,
        program: str,
        after: int,
        descending: bool,
        limit: int,
        patience: float | None,
    ) -> Page:
        await self._filter.check(program)
        found: list[JobRecord] = []
        weight = 0
        began = self._clock.monotonic()
        while jobs := await self._read(filter, after, descending, BATCH):
            verdicts = await self._decide(program, jobs)
            for job, matches in zip(jobs, verdicts, strict=True):
                if matches:
                    weight += job.weight
                    if found and (len(found) == limit or weight > PAGE_BYTES):
                        return Page(found, True)
                    found.append(job)
            after = jobs[-1].key
            if patience is not None and self._clock.monotonic() - began >= patience:
                return Page(found, True, after)
            self._check(began + self._timeout)
        return Page(found, False)

    async def _read(
        self, filter: Filter, after: int, descending: bool, limit: int
    ) -> list[JobRecord]:
        now = self._clock.now_ms()
        plain = msgspec.structs.replace(filter, program=None)
        return await self._reads.jobs_page(plain, after, descending, limit, now)

    async def _decide(self, program: str, jobs: Sequence[JobRecord]) -> list[bool]:
        return await self._filter.matches(program, [job.payload or "null" for job in jobs])

    def _check(self, deadline: float) -> None:
        if self._clock.monotonic() > deadline:
            raise ReadTimeout(
                f"filtering took longer than {self._timeout:g} s: narrow it by queue, type, status"
                " or id, or raise --read-timeout"
            )
