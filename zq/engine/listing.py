"""Listing and counting, with filters that the store decides and jq programs that it cannot."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from zq.engine.jq_filter import JqFilter
from zq.engine.tallies import Tallies
from zq.model.clock import Clock
from zq.model.errors import ReadTimeout
from zq.model.filters import Filter
from zq.model.job import Job
from zq.store import reads
from zq.store.store import Store

BATCH = 1000
"""Rows whose payloads one call of the jq child decides."""


class Page(NamedTuple):
    """Jobs in order, and whether there is at least one more behind them."""

    jobs: list[Job]
    more: bool


class Listing:
    """Reads pages and counts. `timeout` in seconds bounds one whole request."""

    def __init__(
        self, store: Store, clock: Clock, tallies: Tallies, filter: JqFilter, timeout: float
    ) -> None:
        self._scans = store.readers.scans
        self._clock = clock
        self._tallies = tallies
        self._filter = filter
        self._timeout = timeout

    async def page(self, filter: Filter, after: int, descending: bool, limit: int) -> Page:
        """Up to `limit` matching jobs beyond the key `after`."""
        if filter.program is not None:
            return await self._matching(filter, after, descending, limit)
        jobs = await self._read(filter, after, descending, limit + 1)
        return await self._cut(jobs, filter, descending, limit)

    async def count(self, filter: Filter) -> int:
        """How many jobs match."""
        if reads.is_kept(filter):
            return await self._tallies.count(filter)
        if filter.program is None:
            return await self._scans.read(reads.count_jobs, filter, self._clock.now_ms())
        await self._filter.check(filter.program)
        total, after = 0, -1
        deadline = self._clock.monotonic() + self._timeout
        while jobs := await self._read(filter, after, False, BATCH):
            total += sum(await self._decide(filter.program, jobs))
            after = jobs[-1].key
            self._check(deadline)
        return total

    async def _matching(self, filter: Filter, after: int, descending: bool, limit: int) -> Page:
        assert filter.program is not None
        await self._filter.check(filter.program)
        found: list[Job] = []
        weight = 0
        deadline = self._clock.monotonic() + self._timeout
        while jobs := await self._read(filter, after, descending, BATCH):
            verdicts = await self._decide(filter.program, jobs)
            for job, matches in zip(jobs, verdicts, strict=True):
                if matches:
                    weight += job.weight
                    if found and (len(found) == limit or weight > reads.PAGE_BYTES):
                        return Page(found, True)
                    found.append(job)
            after = jobs[-1].key
            self._check(deadline)
        return Page(found, False)

    async def _cut(self, jobs: list[Job], filter: Filter, descending: bool, limit: int) -> Page:
        if len(jobs) > limit:
            return Page(jobs[:limit], True)
        if not jobs or sum(job.weight for job in jobs) < reads.PAGE_BYTES // 2:
            return Page(jobs, False)
        # Large payloads may have ended the page early.
        return Page(jobs, bool(await self._read(filter, jobs[-1].key, descending, 1)))

    async def _read(self, filter: Filter, after: int, descending: bool, limit: int) -> list[Job]:
        now = self._clock.now_ms()
        plain = msgspec.structs.replace(filter, program=None)
        return await self._scans.read(reads.list_jobs, plain, after, descending, limit, now)

    async def _decide(self, program: str, jobs: Sequence[Job]) -> list[bool]:
        return await self._filter.matches(program, [job.payload or "null" for job in jobs])

    def _check(self, deadline: float) -> None:
        if self._clock.monotonic() > deadline:
            raise ReadTimeout(
                f"filtering took longer than {self._timeout:g} s: narrow it by queue, type, status"
                " or id, or raise --read-timeout"
            )
