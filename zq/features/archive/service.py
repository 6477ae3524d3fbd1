"""The verb that brings completed jobs of a queue back as new ones.

A queue has an archive if its settings keep completed jobs: the archive is these jobs.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Self

from zq.features.archive.model import NotArchived, OutOfArchive
from zq.features.archive.model_copies import StoreCopies
from zq.features.schemas.model import SchemaMismatch
from zq.features.schemas.service_running import PayloadChecks
from zq.model.commands import Entered
from zq.model.filters import Filter, ValueRange
from zq.model.job import NO_EXTRAS, CarriedFields, Extras, JobRecord, NewJob, without_former_key
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.model.sharing import maker, values_of
from zq.service.services import Services

SLICE = 256
"""How many jobs come back in one tick."""


_new = maker(JobRecord, NewJob, "payload", "ready_at", "options", "extras", "ttl_ms")


class Replays:
    """Replays of archives."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services)

    def __init__(self, services: Services) -> None:
        engine = services.engine
        self._reads = services.store.reads
        self._clock = services.clock
        self._inbox, self._mint, self._admit = engine.inbox, engine.mint, engine.admission.admit
        self._payloads = services[PayloadChecks]
        self._count = services.tallies.count_replayed

    async def replay(
        self, queue: str, since: int | None, reach: Reach, defaults: QueueSettings | None = None
    ) -> Entered:
        """Store copies of the jobs that were completed from `since` on, slice by slice.

        Each has a new id and new limits: those of the queue, or else the `defaults`. A copy that
        may not be stored is left out, as when its unique key is taken, it does not match the schema
        of the queue, or its budget is gone. So are jobs that complete meanwhile. Return how many
        were stored, and how many were left out for each reason. Raises `NotArchived`,
        `OutOfArchive`, `QueueFull`, `StorageFull`, `WalFull` or `BulkTooLarge`: what is stored by
        then stays.
        """
        reach.require([queue])
        now = self._clock.now_ms()
        _require_archive(queue, await self._reads.settings(queue), since, now)
        span = ValueRange(low=since, high=now)
        filter = Filter(statuses=(Status.COMPLETED,), queues=(queue,), finished_at=span)
        _, upto = await self._reads.key_range()
        after, total, kept = -1, 0, Counter[str]()
        while jobs := await self._reads.jobs_page(filter, after, False, SLICE, now):
            after = jobs[-1].key
            copies = [_copy(job, with_options=defaults is None) for job in jobs if job.key <= upto]
            if not copies:
                break
            matching = [copy for copy in copies if await self._matches(copy)]
            if len(matching) < len(copies):
                kept[SchemaMismatch.code] += len(copies) - len(matching)
            if matching:
                stored = await self._store(matching, reach, defaults)
                total += stored.changed
                kept.update(stored.kept)
        self._count(queue, total)
        return Entered(total, kept)

    async def _store(
        self, copies: Sequence[NewJob], reach: Reach, defaults: QueueSettings | None
    ) -> Entered:
        size = sum([copy.payload_size for copy in copies])
        now = self._clock.now_ms()
        self._admit(len(copies), size)
        keys = self._mint.take(len(copies), now)
        return await self._inbox.ask(StoreCopies(keys, copies, now, size, reach, defaults))

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
