"""What operators watch at one moment: queues, workers, the server and what is wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings
from zq.model.trends import TrendFlow
from zq.model.waits import pause_text
from zq.service.admin import OpenStream
from zq.service.diagnosis import Finding, QueueFacts
from zq.service.queues import QueueStatistics
from zq.service.status import StatusLook


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


def _totals(queues: Sequence[WatchedQueue]) -> Counter[Status]:
    totals = Counter[Status]()
    for queue in queues:
        totals.update(queue.figures.counts)
    return totals
