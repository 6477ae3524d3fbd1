"""Figures of traffic: totals since the start, recent times, and recent rates of each queue.

They are updated once a tick, never once a job.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from operator import add
from typing import NamedTuple

import msgspec

from zq.engine.after_commit import Committed
from zq.model.clock import Clock
from zq.model.effects import Tally, Traffic

_BELOW_ONE = [digit * 10.0**power for power in (-4, -3, -2, -1) for digit in (1, 2, 5)]
SECONDS = (*_BELOW_ONE, 1.0, 2.0, 5.0)
ROWS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)

BUCKET_S = 5.0
"""Ticks are counted in buckets of this length."""

MINUTE_S, FIVE_MINUTES_S = 60.0, 300.0

MOST_TOTALS = 20_000
"""Above this many totals, those of queues without traffic are dropped."""


class Histogram:
    """Counts observations. Each belongs to the smallest bound that it does not exceed."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """One count for each bound, and one for larger observations."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Stats:
    """The loop's figures since the start. Times are in seconds."""

    def __init__(self) -> None:
        self.listens = True
        self._jobs: Sequence[int] = msgspec.structs.astuple(Tally())
        self.tick_rows = Histogram(ROWS)
        self.tick_seconds = Histogram(SECONDS)
        self.fsync_seconds = Histogram(SECONDS)

    @property
    def jobs(self) -> Tally:
        """How many jobs all ticks together have moved, by kind of move."""
        return Tally(*self._jobs)

    def learn(self, committed: Committed) -> None:
        """Count a tick."""
        result = committed.result
        self._jobs = [*map(add, self._jobs, msgspec.structs.astuple(result.tally))]
        self.tick_rows.observe(result.rows)
        self.tick_seconds.observe(committed.seconds)
        if committed.result.durable:
            self.fsync_seconds.observe(result.flush_s)


class QueueFlow(NamedTuple):
    """Jobs since the start, and a second over the last one and five minutes."""

    total: int
    minute: float
    five_minutes: float


NO_FLOW = QueueFlow(0, 0.0, 0.0)


class _Window:
    """The latest buckets, in `parts` of `size` buckets each, and their sum."""

    def __init__(self, parts: int, size: int, least_s: float) -> None:
        self.sum = Traffic()
        self._parts = deque([Traffic()])
        self._most = parts
        self._size = size
        self._filled = 0
        self._least_s = least_s

    def add(self, bucket: Traffic) -> None:
        """Add a complete bucket. The oldest part is dropped when there are too many."""
        if self._filled == self._size:
            self._parts.append(Traffic())
            self._filled = 0
            if len(self._parts) > self._most:
                self.sum.take_back(self._parts.popleft())
        self._filled += 1
        self._parts[-1].add(bucket)
        self.sum.add(bucket)

    def seconds(self, more: float) -> float:
        """The length of the window plus `more` seconds, but at least its nominal length."""
        buckets = (len(self._parts) - 1) * self._size + self._filled
        return max(buckets * BUCKET_S + more, self._least_s)


def _windows() -> tuple[_Window, _Window]:
    return _Window(12, 1, MINUTE_S), _Window(11, 6, FIVE_MINUTES_S)


class Flows:
    """Deliveries, completions and failures by queue.

    Memory grows with the queues in use, not with all queues that ever existed. A queue without
    traffic for five minutes may be forgotten, and counts from 0 when it comes back.
    """

    def __init__(self, clock: Clock) -> None:
        self.listens = True
        self._clock = clock
        self._totals = Traffic()
        self._open = Traffic()
        self._opened = clock.monotonic()
        self._minute, self._five_minutes = _windows()

    def learn(self, committed: Committed) -> None:
        """Count the traffic of a tick."""
        if not committed.result.traffic:
            return
        self._turn()
        for kind, counts in committed.result.traffic:
            getattr(self._open, kind).update(counts)
            getattr(self._totals, kind).update(counts)

    def active(self) -> set[str]:
        """The queues with traffic in the last five minutes."""
        self._turn()
        return self._open.queues() | self._five_minutes.sum.queues()

    def rates(self) -> "FlowRates":
        """The figures of this moment."""
        self._turn()
        age = self._clock.monotonic() - self._opened
        counts = (self._counts(name, age) for name in Traffic.__struct_fields__)
        return FlowRates(self._totals.queues(), *counts)

    def _counts(self, name: str, age: float) -> "FlowCounts":
        minute, five_minutes = self._minute, self._five_minutes
        sums = (self._totals, self._open, minute.sum, five_minutes.sum)
        total, open, of_minute, of_five = (getattr(sum, name) for sum in sums)
        seconds = minute.seconds(age), five_minutes.seconds(age)
        return FlowCounts(total, open, of_minute, of_five, *seconds)

    def _turn(self) -> None:
        """Close the bucket whose time is over, and the empty buckets after it."""
        if self._clock.monotonic() - self._opened >= 2 * FIVE_MINUTES_S:
            self._open, self._opened = Traffic(), self._clock.monotonic()
            self._minute, self._five_minutes = _windows()
        while self._clock.monotonic() - self._opened >= BUCKET_S:
            self._minute.add(self._open)
            self._five_minutes.add(self._open)
            self._open = Traffic()
            self._opened += BUCKET_S
            self._forget()

    def _forget(self) -> None:
        """Drop totals above the limit. It runs once a bucket."""
        totals = self._totals
        if max(len(totals.delivered), len(totals.completed), len(totals.failed)) > MOST_TOTALS:
            for queue in totals.queues() - self._five_minutes.sum.queues():
                for counts in (totals.delivered, totals.completed, totals.failed):
                    counts.pop(queue, None)


class FlowCounts(NamedTuple):
    """The figures of one kind of traffic: totals, the open bucket, and the two windows."""

    total: Counter[str]
    open: Counter[str]
    minute: Counter[str]
    five_minutes: Counter[str]
    minute_s: float
    five_minutes_s: float

    def of(self, queue: str) -> QueueFlow:
        if queue not in self.total:
            return NO_FLOW
        open = self.open.get(queue, 0)
        return QueueFlow(
            self.total[queue],
            (open + self.minute.get(queue, 0)) / self.minute_s,
            (open + self.five_minutes.get(queue, 0)) / self.five_minutes_s,
        )


class FlowRates(NamedTuple):
    """The flows of one moment, and the queues that have any."""

    known: set[str]
    delivered: FlowCounts
    completed: FlowCounts
    failed: FlowCounts


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

    def read(self, now: float) -> RecentTimes:
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
        now = committed.tick.monotonic
        self.ticks.mark(now)
        if committed.tick.durable:
            self.flushes.mark(now)
