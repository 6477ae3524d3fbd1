"""One search through jobs by words, by a jq program, or by both, slice by slice.

The store looks for words in slices of its own, on a reader's thread. For a program, payloads are
read batch by batch, and a child process decides.
"""

from collections.abc import Sequence
from typing import Self

from zq.engine.jq.filter import JqFilter
from zq.features.search.store import SearchReads
from zq.model.clock import Clock
from zq.model.errors import ReadTimeout
from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.service.listing import BATCH
from zq.service.services import RunningService, Services
from zq.store.reads import Reads
from zq.store.snapshot import PAGE_BYTES

MOST_LOOKED = 200_000
"""The most jobs that one search for words examines; it says where another one goes on."""


class Search:
    """A search that goes on from the key `reached`, upwards or `descending`.

    `timeout` (seconds) limits the whole of it. It is over sooner after `patience` (seconds), where
    that is given, or once `MOST_LOOKED` jobs were searched for words.
    """

    def __init__(
        self,
        reads: Reads,
        clock: Clock,
        jq: JqFilter,
        filter: Filter,
        after: int,
        descending: bool,
        timeout: float,
        patience: float | None,
    ) -> None:
        self.reached = after
        self._reads = reads
        self._searched = reads.of(SearchReads)
        self._clock = clock
        self._jq = jq
        self._filter = filter
        self._descending = descending
        self._timeout = timeout
        self._patience = patience
        self._began = clock.monotonic()
        self._looked = 0

    async def keys(self) -> tuple[list[int], bool]:
        now = self._clock.now_ms()
        look = await self._searched.find_words(self._filter, self.reached, self._descending, now)
        if look.reached is not None:
            self.reached = look.reached
        self._looked += look.looked
        return look.keys, look.reached is not None

    async def jobs(self, most: int) -> tuple[list[JobRecord], bool]:
        """The next matching jobs with their payloads, and false if no job was left to look at.

        With words and without a program these are at most `most`.
        """
        if self._filter.words:
            jobs, more = await self._with_words(most)
        else:
            jobs = await self._read(self._filter.plain, self.reached, BATCH)
            more = bool(jobs)
            if jobs:
                self.reached = jobs[-1].key
        if self._filter.program is not None and jobs:
            verdicts = await self._decide(self._filter.program, jobs)
            jobs = [job for job, matches in zip(jobs, verdicts, strict=True) if matches]
        return jobs, more

    def is_over(self) -> bool:
        took = self._clock.monotonic() - self._began
        if self._looked >= MOST_LOOKED or (self._patience is not None and took >= self._patience):
            return True
        if took > self._timeout:
            raise ReadTimeout(
                f"filtering took longer than {self._timeout:g} s: narrow it by queue, type, status"
                " or id, or raise --read-timeout"
            )
        return False

    async def _with_words(self, most: int) -> tuple[list[JobRecord], bool]:
        before = self.reached
        keys, more = await self.keys()
        if self._filter.program is None and len(keys) > most:
            keys = keys[:most]
            self.reached = keys[-1]
        if not keys:
            return [], more
        jobs = await self._read(Filter(keys=tuple(keys)), before, len(keys))
        if jobs and sum(job.weight for job in jobs) >= PAGE_BYTES // 2:
            # Large payloads may have ended the page early: the others come next.
            self.reached = jobs[-1].key
        return jobs, more

    async def _read(self, filter: Filter, after: int, limit: int) -> list[JobRecord]:
        now = self._clock.now_ms()
        return await self._reads.jobs_page(filter, after, self._descending, limit, now)

    async def _decide(self, program: str, jobs: Sequence[JobRecord]) -> list[bool]:
        return await self._jq.matches(program, [job.payload or "null" for job in jobs])


class Searches(RunningService):
    """Begins the searches of a server. `timeout` (seconds) limits one whole request."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The searches of a server. Its listing asks for them."""
        timeout = services.settings.read_timeout / 1000
        searches = cls(services.store.reads, services.clock, services.filter, timeout)
        services.listing.searching = searches.begin
        return searches

    def __init__(self, reads: Reads, clock: Clock, jq: JqFilter, timeout: float) -> None:
        self._reads = reads
        self._clock = clock
        self._jq = jq
        self._timeout = timeout

    async def begin(
        self, filter: Filter, after: int, descending: bool, patience: float | None
    ) -> Search:
        """A search from a key on. Raises the errors of `JqFilter` if the filter has a program."""
        if filter.program is not None:
            await self._jq.check(filter.program)
        parts = self._reads, self._clock, self._jq
        return Search(*parts, filter, after, descending, self._timeout, patience)


RUNNING = (Searches,)
