"""How much goes through each queue: since the start, and over the last one and five minutes."""

from collections import Counter, deque
from typing import NamedTuple

from zq.engine.committed import Committed
from zq.model.clock import Clock
from zq.model.commands import Traffic

BUCKET_S = 5.0
"""What a tick brings is counted in buckets of this length."""

MINUTE_S, FIVE_MINUTES_S = 60.0, 300.0

MOST_TOTALS = 20_000
"""Queues whose totals are kept although nothing goes through them any more."""


class Flow(NamedTuple):
    """Jobs since the start, and a second over the last one and five minutes."""

    total: int
    minute: float
    five_minutes: float


NOTHING = Flow(0, 0.0, 0.0)


class _Window:
    """The latest buckets, in `parts` of `size` of them each, and their sum."""

    def __init__(self, parts: int, size: int, least_s: float) -> None:
        self.sum = Traffic()
        self._parts = deque([Traffic()])
        self._most = parts
        self._size = size
        self._filled = 0
        self._least_s = least_s

    def add(self, bucket: Traffic) -> None:
        """Count a bucket that is complete; the oldest part goes where it is one too many."""
        if self._filled == self._size:
            self._parts.append(Traffic())
            self._filled = 0
            if len(self._parts) > self._most:
                self.sum.take_back(self._parts.popleft())
        self._filled += 1
        self._parts[-1].add(bucket)
        self.sum.add(bucket)

    def seconds(self, more: float) -> float:
        """The time that the sum is of, and `more` seconds; never less than what it is called."""
        buckets = (len(self._parts) - 1) * self._size + self._filled
        return max(buckets * BUCKET_S + more, self._least_s)


def _windows() -> tuple[_Window, _Window]:
    return _Window(12, 1, MINUTE_S), _Window(11, 6, FIVE_MINUTES_S)


class Flows:
    """Deliveries, completions and failures by queue.

    What is kept grows with the queues in use, not with those that ever were: a queue through which
    nothing has gone for five minutes may be forgotten, and counts from 0 when it comes back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._totals = Traffic()
        self._open = Traffic()
        self._opened = clock.monotonic()
        self._minute, self._five_minutes = _windows()

    def learn(self, committed: Committed) -> None:
        """Count what a tick has done."""
        if committed.result.traffic is not None:
            self.count(committed.result.traffic)

    def count(self, traffic: Traffic) -> None:
        """Count what has been done just now."""
        if traffic.delivered or traffic.completed or traffic.failed:
            self._turn()
            self._open.add(traffic)
            self._totals.add(traffic)

    def active(self) -> set[str]:
        """The queues with traffic in the last five minutes."""
        self._turn()
        return self._open.queues() | self._five_minutes.sum.queues()

    def look(self) -> "Look":
        """What there is to tell now."""
        self._turn()
        age = self._clock.monotonic() - self._opened
        counts = (self._counts(name, age) for name in Traffic.__struct_fields__)
        return Look(self._totals.queues(), *counts)

    def _counts(self, name: str, age: float) -> "Counts":
        minute, five_minutes = self._minute, self._five_minutes
        sums = (self._totals, self._open, minute.sum, five_minutes.sum)
        total, open, of_minute, of_five = (getattr(sum, name) for sum in sums)
        seconds = minute.seconds(age), five_minutes.seconds(age)
        return Counts(total, open, of_minute, of_five, *seconds)

    def _turn(self) -> None:
        """Close the bucket whose time is over, and the empty ones after it."""
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
        """Bound the totals. It runs once a bucket."""
        totals = self._totals
        if max(len(totals.delivered), len(totals.completed), len(totals.failed)) > MOST_TOTALS:
            for queue in totals.queues() - self._five_minutes.sum.queues():
                for counts in (totals.delivered, totals.completed, totals.failed):
                    counts.pop(queue, None)


class Counts(NamedTuple):
    """One kind of traffic: its totals, the open bucket, the closed ones of either window."""

    total: Counter[str]
    open: Counter[str]
    minute: Counter[str]
    five_minutes: Counter[str]
    minute_s: float
    five_minutes_s: float

    def of(self, queue: str) -> Flow:
        """That of one queue."""
        if queue not in self.total:
            return NOTHING
        open = self.open.get(queue, 0)
        return Flow(
            self.total[queue],
            (open + self.minute.get(queue, 0)) / self.minute_s,
            (open + self.five_minutes.get(queue, 0)) / self.five_minutes_s,
        )


class Look(NamedTuple):
    """The flows of one moment, and the queues that have any."""

    known: set[str]
    delivered: Counts
    completed: Counts
    failed: Counts
