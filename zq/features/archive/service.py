"""The verb that brings completed jobs of a queue back as new ones.

A queue has an archive if its settings keep completed jobs: the archive is these jobs.
"""

from collections.abc import Callable
from typing import Self

from zq.features.archive.model import NotArchived, OutOfArchive
from zq.features.schemas.model import SchemaMismatch
from zq.features.schemas.service_running import PayloadChecks
from zq.model.clock import Clock
from zq.model.filters import Filter, ValueRange
from zq.model.job import NO_EXTRAS, CarriedFields, Extras, JobRecord, NewJob, without_former_key
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.model.sharing import maker, values_of
from zq.service.jobs import Jobs
from zq.service.services import Services
from zq.store.api import Store

SLICE = 256
"""How many jobs come back in one tick."""


_new = maker(JobRecord, NewJob, "payload", "ready_at", "options", "extras", "ttl_ms")


class Replays:
    """Replays of archives. `count` learns how many jobs of a queue came back."""

    @classmethod
    def of(cls, services: Services) -> Self:
        count = services.tallies.count_replayed
        return cls(services.store, services.clock, services.jobs, services[PayloadChecks], count)

    def __init__(
        self,
        store: Store,
        clock: Clock,
        jobs: Jobs,
        payloads: PayloadChecks,
        count: Callable[[str, int], None],
    ) -> None:
        self._reads = store.reads
        self._clock = clock
        self._jobs = jobs
        self._payloads = payloads
        self._count = count

    async def replay(
        self, queue: str, since: int | None, reach: Reach, defaults: QueueSettings | None = None
    ) -> int:
        """Store copies of the jobs that were completed from `since` on, slice by slice.

        Each has a new id and new limits: those of the queue, or else the `defaults`. A copy whose
        unique key is taken, or whose payload does not match the schema of the queue, is left out.
        Jobs that complete meanwhile are left out too. Return how many were stored. Raises
        `NotArchived`, `OutOfArchive`, and the errors of `Jobs.enqueue`: the slices before stay
        stored.
        """
        reach.require([queue])
        now = self._clock.now_ms()
        _require_archive(queue, await self._reads.settings(queue), since, now)
        span = ValueRange(low=since, high=now)
        filter = Filter(statuses=(Status.COMPLETED,), queues=(queue,), finished_at=span)
        _, upto = await self._reads.key_range()
        after, total = -1, 0
        while jobs := await self._reads.jobs_page(filter, after, False, SLICE, now):
            after = jobs[-1].key
            copies = [_copy(job, with_options=defaults is None) for job in jobs if job.key <= upto]
            if not copies:
                break
            if matching := [copy for copy in copies if await self._matches(copy)]:
                accepted = await self._jobs.enqueue(matching, reach, defaults=defaults)
                total += len(matching) - accepted.joined
        self._count(queue, total)
        return total

    async def _matches(self, copy: NewJob) -> bool:
        try:
            await self._payloads.require([(copy.queue, copy.payload)])
        except SchemaMismatch:
            return False
        return True


def _require_archive(queue: str, settings: QueueSettings, since: int | None, now: int) -> None:
    kept_ms = settings.archived_ms
    if not kept_ms:
        raise NotArchived(queue)
    if since is not None and since < now - kept_ms:
        raise OutOfArchive(queue, kept_ms)


def _copy(job: JobRecord, *, with_options: bool) -> NewJob:
    """A new job with what a completed one brought for its worker."""
    extras = job.extras or NO_EXTRAS
    said = Extras(meta=extras.meta, **values_of(CarriedFields, extras))
    return _new(
        without_former_key(job),
        payload=job.payload or "null",
        ready_at=None,
        options=job.options if with_options else None,
        extras=None if said == NO_EXTRAS else said,
        ttl_ms=None,
    )
