"""Recent times: quantiles over the last five minutes of a histogram."""

from collections import deque
from typing import NamedTuple

from zq.engine.after_commit import Committed
from zq.engine.subscribers.figures import FIVE_MINUTES_S, MINUTE_S, Histogram, Stats


class RecentTimes(NamedTuple):
    """The observations of about five minutes, and the bounds of half and of 99 % of them.

    The bounds are None if there was no observation. The largest bound also stands for more.
    """

    observed: int
    median: float | None = None
    p99: float | None = None


_MARK_LASTS_S = FIVE_MINUTES_S + MINUTE_S
"""A mark stands for the observations of the minute after it."""


class Recent:
    """Marks a histogram's counts once a minute, so that old observations can be left out."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._marks: deque[tuple[float, list[int]]] = deque()
        self._latest = float("-inf")

    def mark(self, now: float) -> None:
        """Note that an observation follows, at a monotonic time in seconds."""
        marks = self._marks
        self._latest = now
        if marks and now - marks[-1][0] < MINUTE_S:
            return
        marks.append((now, list(self._histogram.counts)))
        while marks[0][0] <= now - _MARK_LASTS_S:
            marks.popleft()

    def look(self, now: float) -> RecentTimes:
        """The distribution of recent observations."""
        if now - self._latest > FIVE_MINUTES_S:
            return RecentTimes(0)
        before = next(counts for at, counts in self._marks if at > now - _MARK_LASTS_S)
        counts = [n - b for n, b in zip(self._histogram.counts, before, strict=True)]
        total = sum(counts)
        median, p99 = self._bound(counts, total * 0.5), self._bound(counts, total * 0.99)
        return RecentTimes(total, median, p99)

    def _bound(self, counts: list[int], wanted: float) -> float:
        bounds = self._histogram.bounds
        reached = 0
        for bound, count in zip(bounds, counts, strict=False):
            reached += count
            if reached >= wanted:
                return bound
        return bounds[-1]


class Pulse:
    """Recent ticks and flushes. It learns of a tick before `Stats`, which observes the tick."""

    def __init__(self, stats: Stats) -> None:
        self.listens = True
        self.ticks = Recent(stats.tick_seconds)
        self.flushes = Recent(stats.fsync_seconds)

    def learn(self, committed: Committed) -> None:
        """Note that there was a tick."""
        now = committed.tick.monotonic
        self.ticks.mark(now)
        if committed.tick.durable:
            self.flushes.mark(now)
