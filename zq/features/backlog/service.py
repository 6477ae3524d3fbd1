"""The backlog of queues: gathers the facts of a moment for autoscalers."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Self

from zq.engine.delivery.streams import Streams
from zq.engine.leaving import LeavingQueues
from zq.features.backlog.model import (
    QueueBacklog,
    backlog_of,
    leaving_backlog,
    mean_of,
    slots_needed,
    summed,
    workers_by_slots,
    workers_by_target,
)
from zq.features.backlog.store import BacklogReads
from zq.features.trends.model import TrendRange
from zq.features.trends.service import Trends
from zq.model.clock import Clock
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.service.queues import Queues
from zq.service.services import Services
from zq.store.api import Store

_RUNS = frozenset({Status.READY, Status.IN_FLIGHT})


class Backlog(NamedTuple):
    """The backlog of some queues together, and how many workers it needs.

    `mean_ms` is how long their jobs ran in the last hour, if it was asked for and is known. `slots`
    is how many jobs one of their workers runs at a time, if any is connected.
    """

    jobs: QueueBacklog
    workers: int
    mean_ms: float | None
    slots: float | None


class Backlogs:
    """What could run now, by a bounded read a queue, and the workers in memory."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(
            *(services.store, services.clock, services.engine.streams),
            *(services.engine.leaving, services.queues, services[Trends]),
        )

    def __init__(
        self,
        store: Store,
        clock: Clock,
        streams: Streams,
        leaving: LeavingQueues,
        queues: Queues,
        trends: Trends,
    ) -> None:
        self._reads = store.reads.of(BacklogReads)
        self._clock = clock
        self._streams = streams
        self._leaving = leaving
        self._queues = queues
        self._trends = trends

    async def named(self, prefix: str, reach: Reach) -> list[str]:
        """The queues within reach that have ready jobs or jobs in flight for workers, and begin
        so."""
        counts = await self._queues.counts()
        found = {queue for (queue, status), n in counts.items() if n and status in _RUNS}
        return sorted(
            each
            for each in found
            if each.startswith(prefix) and reach.covers(each) and not self._leaving.covers(each)
        )

    async def of_queues(self, queues: Sequence[str], target: int | None, reach: Reach) -> Backlog:
        """The backlog of different queues together. Raises `QueueOutOfReach`.

        `target` is how many jobs a worker is to have. Without it, running times say how many
        workers are needed, by the formula of `zq.features.backlog.model`.
        """
        reach.require(queues)
        all_settings, found = [], []
        for queue in queues:
            facts = await self._reads.backlog(queue, self._clock.now_ms())
            all_settings.append(facts.settings)
            leaves = self._leaving.covers(queue)
            found.append(leaving_backlog(facts) if leaves else backlog_of(facts))
        jobs = summed(found)
        slots = self._slots(queues)
        if target is not None:
            return Backlog(jobs, workers_by_target(jobs.all, target), None, slots)
        times: Counter[int] = Counter()
        needed = []
        for queue, settings, each in zip(queues, all_settings, found, strict=True):
            if self._leaving.covers(queue):
                continue
            runs = (await self._trends.series(queue, TrendRange.HOUR, EVERYWHERE)).sum.run
            times.update(runs)
            needed.append(slots_needed(each, mean_of(runs), settings.rate))
        return Backlog(jobs, workers_by_slots(needed, slots), mean_of(times), slots)

    def _slots(self, queues: Sequence[str]) -> float | None:
        """How many jobs a worker of these queues runs at a time, on average."""
        streams = {
            stream.number: stream.subscription.concurrency
            for queue in queues
            for stream in self._streams.of_queue(queue)
            if not stream.is_done
        }
        return sum(streams.values()) / len(streams) if streams else None
