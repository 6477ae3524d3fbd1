"""A queue that is watched: its figures, its workers, and the worst that is wrong with it."""

from collections.abc import Iterable
from typing import NamedTuple

from zq.features.diagnosis.model import (
    STATES,
    Finding,
    FindingCode,
    QueueFacts,
    explains,
    place_of,
)
from zq.features.trends.model import TrendFlow
from zq.model.lifecycle import Status
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.service.queues import QueueStatistics

LAST = 2**62
"""The place of a queue with which nothing is wrong: it comes after all others."""


class QueueWorkers(NamedTuple):
    """How many streams take from a queue, and how many jobs they run at a time."""

    workers: int = 0
    slots: int = 0
    alone_since: int = 0
    """Without streams: when the last one was closed, or the server began, in milliseconds."""

    def with_others(self, others: "QueueWorkers") -> "QueueWorkers":
        """The streams of both together."""
        return QueueWorkers(self.workers + others.workers, self.slots + others.slots)


class WatchedQueue(NamedTuple):
    """A queue, its settings and workers, and the worst that is wrong with it."""

    figures: QueueStatistics
    settings: QueueSettings | None
    taken_by: QueueWorkers = QueueWorkers()
    flow: TrendFlow | None = None
    worst: Finding | None = None
    place: int = LAST
    """The place of the queue in the order of what is wrong: a smaller number is worse."""
    due: int | None = None
    """When there may be more to say of it, although nothing happens there (ms)."""

    @property
    def waiting(self) -> int:
        """The number of ready jobs."""
        return self.figures.counts.get(Status.READY, 0)

    @property
    def state(self) -> FindingCode | None:
        """The state of the queue in a word; None if it is as it should be."""
        if self.worst is not None and self.worst.code in STATES:
            return self.worst.code
        is_paused = self.settings is not None and self.settings.paused
        return FindingCode.PAUSED if is_paused else None

    @property
    def facts(self) -> QueueFacts:
        """The facts for a diagnosis."""
        figures = self.figures
        return QueueFacts(
            figures.queue,
            self.waiting,
            figures.counts.get(Status.DEAD, 0),
            figures.oldest_ready_at,
            self.taken_by.workers,
            self.taken_by.alone_since,
            figures.deliveries.minute,
            figures.completions.five_minutes,
            figures.failures.five_minutes,
            figures.counts.get(Status.IN_FLIGHT, 0),
            self.settings or NO_SETTINGS,
            self.flow,
        )

    def with_findings(self, findings: Iterable[Finding]) -> "WatchedQueue":
        """The queue with more that is wrong, as far as that is worse than what is known, or
        explains it."""
        worst = min(findings, key=place_of, default=None)
        if worst is None:
            return self
        if place_of(worst) >= self.place and not (self.worst and explains(worst, self.worst)):
            return self
        return self._replace(worst=worst, place=place_of(worst))
