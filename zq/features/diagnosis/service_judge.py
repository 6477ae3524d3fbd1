"""Judges queues: what is wrong with each, from its figures, settings and workers."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from zq.engine.subscribers.figures import NO_FLOW
from zq.features.diagnosis.model_findings import Finding, due_at, findings_of_queue, is_failing
from zq.features.diagnosis.service_lookback import Lookback
from zq.features.trends.model import REST, TrendFlow
from zq.features.trends.service import Trends
from zq.model.clock import Clock
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.operators.page.service_overview import QueueWorkers, WatchedQueue
from zq.service.admin import Admin, OpenStream
from zq.service.queues import QueueStatistics
from zq.service.services import Services

AT_A_TIME = 100
"""How many queues are judged before other tasks get a turn."""

MOST_LOOKED_BACK = 20
"""The most failing queues for which it is found out, at a time, since when they fail."""

_NOBODY = QueueWorkers()


class WorkersByQueue:
    """The streams that take from each queue by name, and from all queues of a reach."""

    def __init__(self, workers: Iterable[OpenStream] = ()) -> None:
        self.by_queue: dict[str, QueueWorkers] = {}
        self.ranging: dict[Reach, QueueWorkers] = {}
        for worker in workers:
            one = QueueWorkers(1, worker.concurrency)
            for queue in worker.queues:
                self.by_queue[queue] = self.by_queue.get(queue, _NOBODY).with_others(one)
            if not worker.queues:
                others = self.ranging.get(worker.reach, _NOBODY)
                self.ranging[worker.reach] = others.with_others(one)

    def of(self, queue: str) -> QueueWorkers:
        """The workers that take from a queue."""
        found = self.by_queue.get(queue, _NOBODY)
        for reach, others in self.ranging.items():
            if reach.covers(queue):
                found = found.with_others(others)
        return found


class JudgedQueue(NamedTuple):
    """A queue, and all that is wrong with it."""

    queue: WatchedQueue
    findings: Sequence[Finding]


class QueueJudge:
    """Judges many queues in slices."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The judge of a server."""
        return cls(
            services.clock, services.admin, services[Trends], services[Lookback], services.since
        )

    def __init__(
        self, clock: Clock, admin: Admin, trends: Trends, lookback: Lookback, began: int
    ) -> None:
        """`began` is when the server was started, in milliseconds."""
        self._clock = clock
        self._admin = admin
        self._trends = trends
        self._lookback = lookback
        self._began = began

    async def judge(
        self,
        found: Sequence[QueueStatistics],
        settings: Mapping[str, QueueSettings],
        takers: WorkersByQueue,
    ) -> list[JudgedQueue]:
        """The queues with what is wrong with them, in their order."""
        flows = self._trends.flows()
        unknown = None if REST in flows else TrendFlow()
        now, looked_back = self._clock.now_ms(), 0
        judged = list[JudgedQueue]()
        for figures in found:
            name, taken_by = figures.queue, takers.of(figures.queue)
            if not taken_by.workers:
                taken_by = QueueWorkers(alone_since=max(self._admin.left_at(name), self._began))
            queue = WatchedQueue(figures, settings.get(name), taken_by, flows.get(name, unknown))
            facts = queue.facts
            fails = figures.failures is not NO_FLOW and is_failing(facts)
            if fails and looked_back < MOST_LOOKED_BACK:
                looked_back += 1
                facts = facts._replace(failing=await self._lookback.failing(name, facts.ready))
            findings = list(findings_of_queue(facts, now))
            queue = queue._replace(due=due_at(facts, now)).with_findings(findings)
            judged.append(JudgedQueue(queue, findings))
            if not len(judged) % AT_A_TIME:
                await asyncio.sleep(0)
        return judged
