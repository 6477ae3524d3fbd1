"""The verbs that say why a job waits, what comes next, and what the groups of a queue wait for."""

from typing import NamedTuple, Self

from zq.engine.delivery.streams import Streams
from zq.engine.delivery.takers import MOST_UNSENT
from zq.engine.leaving import LeavingQueues
from zq.engine.loop import Openings
from zq.features.waits.model import (
    OpenGroup,
    QueueTakers,
    QueueWaitFacts,
    QueueWhy,
    TimePlace,
    WaitFacts,
    WaitReason,
    queue_why,
    wait_reasons,
)
from zq.features.waits.store import WaitReads
from zq.model.clock import Clock
from zq.model.errors import JobNotFound
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.service.queues import Queues
from zq.service.services import Services
from zq.store.api import Store


class WaitVerdict(NamedTuple):
    """The status of a job, and why it does not run: the strongest reason first."""

    status: Status
    reasons: list[WaitReason]


class Waits:
    """Gathers the facts: one bounded read of the store, and the workers in memory."""

    @classmethod
    def of(cls, services: Services) -> Self:
        store, engine = services.store, services.engine
        return cls(
            store,
            services.clock,
            services.ids,
            engine.streams,
            engine.openings,
            engine.leaving,
            services.queues,
        )

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdCodec,
        streams: Streams,
        openings: Openings,
        leaving: LeavingQueues,
        queues: Queues,
    ) -> None:
        self._reads = store.reads.of(WaitReads)
        self._clock = clock
        self._ids = ids
        self._streams = streams
        self._openings = openings
        self._leaving = leaving
        self._queues = queues

    async def why(self, key: int, reach: Reach) -> WaitVerdict:
        """Why a job waits. Raises `JobNotFound`."""
        now = self._clock.now_ms()
        waiting = await self._reads.waiting(key, reach, now)
        if waiting is None:
            raise JobNotFound
        job = waiting.job
        facts = WaitFacts(
            now,
            waiting,
            self._takers(job.queue),
            None if waiting.head is None else self._ids.text(waiting.head),
            self._worker(job),
            self._opens_at(job.queue, now),
            self._streams.free <= 0,
            self._leaving.covers(job.queue),
        )
        return WaitVerdict(job.status, wait_reasons(facts))

    async def why_of(self, queue: str, reach: Reach) -> QueueWhy:
        """Why the jobs of a queue wait. Raises `QueueOutOfReach`."""
        figures = await self._queues.statistics_of(queue, reach)
        now = self._clock.now_ms()
        stored = await self._reads.stored_waits(queue, now)
        streams = [s for s in self._streams.of_queue(queue) if not s.is_done]
        free = sum(s.idle(0) for s in streams)
        facts = QueueWaitFacts(
            now,
            stored,
            figures.counts.get(Status.READY, 0),
            figures.counts.get(Status.IN_FLIGHT, 0),
            figures.deliveries.minute,
            self._takers(queue),
            sum(s.subscription.concurrency for s in streams),
            free,
            self._opens_at(queue, now),
            self._streams.free <= 0,
            self._leaving.covers(queue),
        )
        return queue_why(facts)

    async def scheduled(self, reach: Reach, after: TimePlace, limit: int) -> list[JobRecord]:
        """The scheduled jobs after a place in the order of times."""
        return await self._reads.scheduled(reach, after, limit)

    async def groups(self, queue: str, reach: Reach, after: str, limit: int) -> list[OpenGroup]:
        """The groups of a queue with unfinished jobs, from the one after `after` on, by name.

        Raises `QueueOutOfReach`.
        """
        reach.require([queue])
        return await self._reads.groups(queue, after, limit)

    def _takers(self, queue: str) -> QueueTakers:
        groups = self._streams.groups_of(queue)
        streams = self._streams.of_queue(queue)
        draining = sum(stream.is_done for stream in streams)
        choked = sum(stream.unsent > MOST_UNSENT for stream in streams if not stream.is_done)
        full = sum(
            stream.subscription.window <= len(stream.held)
            for stream in streams
            if not stream.is_done and stream.unsent <= MOST_UNSENT
        )
        count = sum(group.members for group in groups)
        return QueueTakers(count, count - draining - choked - full, draining, choked)

    def _worker(self, job: JobRecord) -> str | None:
        if job.holder is None or job.holder == 0:
            return job.claimant
        return self._streams.name_of(job.holder)

    def _opens_at(self, queue: str, now: int) -> int | None:
        time = self._openings.times.get(queue)
        if time is None:
            return None
        return now + round((time - self._clock.monotonic()) * 1000)
