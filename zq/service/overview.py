"""One look at everything that operators watch: queues, workers, the server and what is wrong."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zq.model.clock import Clock
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings
from zq.model.trends import REST, TrendFlow
from zq.model.waits import pause_text
from zq.service.admin import Admin, OpenStream
from zq.service.diagnosis import (
    Finding,
    QueueFacts,
    ServerFacts,
    findings_of_queue,
    findings_of_server,
    worst_first,
)
from zq.service.queues import Queues, QueueStatistics
from zq.service.status import StatusBoard, StatusLook
from zq.service.trends import Trends

AT_A_TIME = 100
"""So many queues are judged before other tasks get a turn."""


class WatchedQueue(NamedTuple):
    """A queue, its settings, and how many streams take from it."""

    figures: QueueStatistics
    settings: QueueSettings | None
    workers: int
    flow: TrendFlow | None = None

    @property
    def waiting(self) -> int:
        """Its ready jobs."""
        return self.figures.counts.get(Status.READY, 0)

    def facts(self) -> QueueFacts:
        """What a diagnosis needs."""
        figures = self.figures
        return QueueFacts(
            figures.queue,
            self.waiting,
            figures.counts.get(Status.DEAD, 0),
            figures.oldest_ready_at,
            self.workers,
            figures.deliveries.minute,
            figures.deliveries.five_minutes,
            figures.failures.five_minutes,
            pause_text(self.settings) if self.settings is not None and self.settings.paused else "",
            self.flow,
        )


class Overview(NamedTuple):
    """One moment. Times are in milliseconds."""

    at: int
    queues: Sequence[WatchedQueue]
    workers: Sequence[OpenStream]
    status: StatusLook
    findings: Sequence[Finding]
    """What is wrong, the worst first."""
    totals: Mapping[Status, int]
    """How many jobs there are in each status."""

    def within(self, reach: Reach) -> "Overview":
        """The part of it that lies within a reach."""
        if reach is EVERYWHERE:
            return self
        queues = [queue for queue in self.queues if reach.covers(queue.figures.queue)]
        return self._replace(
            queues=queues,
            workers=[w for w in self.workers if w.queues and all(map(reach.covers, w.queues))],
            findings=[f for f in self.findings if f.queue is None or reach.covers(f.queue)],
            totals=_totals(queues),
        )


class Lookout:
    """Takes looks. A look reads counts by connections of their own. No tick waits for it."""

    def __init__(
        self, clock: Clock, queues: Queues, admin: Admin, status: StatusBoard, trends: Trends
    ) -> None:
        self._clock = clock
        self._queues = queues
        self._admin = admin
        self._status = status
        self._trends = trends

    def ticks(self) -> int:
        """How many ticks there were. Without another one, little has changed."""
        return sum(self._admin.figures().tick_rows.counts)

    async def look(self) -> Overview:
        """The state of this moment. Raises `ReadTimeout` or `ReadersBusy`."""
        found = await self._queues.statistics(EVERYWHERE)
        settings = await self._queues.all_settings(EVERYWHERE)
        workers = self._admin.workers(EVERYWHERE)
        takers = Counter(queue for worker in workers for queue in worker.queues)
        takers_of_all = sum(not worker.queues for worker in workers)
        flows = self._trends.flows()
        unknown = None if REST in flows else TrendFlow()
        now, status = self._clock.now_ms(), self._status.look()
        queues = list[WatchedQueue]()
        findings = [*findings_of_server(_server_facts(status))]
        totals = Counter[Status]()
        for each in found:
            queue = WatchedQueue(
                each,
                settings.get(each.queue),
                takers[each.queue] + takers_of_all,
                flows.get(each.queue, unknown),
            )
            queues.append(queue)
            findings += findings_of_queue(queue.facts(), now)
            totals.update(each.counts)
            if not len(queues) % AT_A_TIME:
                await asyncio.sleep(0)
        return Overview(now, queues, workers, status, worst_first(findings), totals)


def _server_facts(status: StatusLook) -> ServerFacts:
    return ServerFacts(
        status.reached, status.flushes.p99, status.free_bytes, status.limits.disk_reserve
    )


def _totals(queues: Sequence[WatchedQueue]) -> Counter[Status]:
    totals = Counter[Status]()
    for queue in queues:
        totals.update(queue.figures.counts)
    return totals
