"""Trends: what happened in a queue in one minute, or in one hour, in a few numbers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from zq.model.commands import Command

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000

KEPT_MS = {MINUTE_MS: 2 * DAY_MS, HOUR_MS: 90 * DAY_MS}
"""How long trends are kept, by their length."""

MOST_QUEUES = 500
"""How many queues have a trend of their own in a minute, or an hour."""

REST = "*"
"""Stands for all other queues. No queue can have this name."""

TOTAL = ""
"""Stands for all queues together. No queue can have this name."""


class Trend(msgspec.Struct, array_like=True):
    """Jobs of a queue by what became of them, and how long they waited and ran.

    Times are counted by their powers of two: under `n` stand the times below ``2**n`` milliseconds
    that are not below half of it.
    """

    enqueued: int = 0
    delivered: int = 0
    completed: int = 0
    failed: int = 0
    """Reported failures, whatever happened to the job then."""
    died: int = 0
    expired: int = 0
    wait: dict[int, int] = {}
    """From the time when a job was ready until its delivery."""
    run: dict[int, int] = {}
    """From a delivery until it ended by a report, or by a cancellation."""

    def add(self, other: "Trend") -> None:
        """Add the counts of another one."""
        self.enqueued += other.enqueued
        self.delivered += other.delivered
        self.completed += other.completed
        self.failed += other.failed
        self.died += other.died
        self.expired += other.expired
        for ours, theirs in ((self.wait, other.wait), (self.run, other.run)):
            for power, n in theirs.items():
                ours[power] = ours.get(power, 0) + n

    @property
    def left(self) -> int:
        """How many jobs were done with, for better or worse."""
        return self.completed + self.died + self.expired


class TrendAt(msgspec.Struct, array_like=True):
    """A trend, and when it begins, in milliseconds."""

    at: int
    trend: Trend


class TimeMark(msgspec.Struct):
    """A moment to which operators have given a name, such as a deployment, in milliseconds."""

    at: int
    text: str


def summed(trends: Sequence[Trend]) -> Trend:
    """All of them together."""
    found = Trend()
    for trend in trends:
        found.add(trend)
    return found


def quantile(times: Mapping[int, int], share: float) -> float | None:
    """The time in milliseconds that this share of the times does not exceed; None without times.

    Within a power of two, times are taken to be evenly spread.
    """
    rank = share * sum(times.values())
    for power, n in sorted(times.items()):
        if rank <= n:
            lowest = 2.0**power / 2 if power else 0.0
            return lowest + (2.0**power - lowest) * rank / n if power else 0.0
        rank -= n
    return None


class TrendFlow(NamedTuple):
    """What came and what was done with, in jobs a second over the last five minutes."""

    arrivals: float = 0.0
    ends: float = 0.0

    def drained_ms(self, waiting: int) -> float | None:
        """How long so many waiting jobs take at this rate; None if they never become fewer."""
        if not waiting:
            return 0.0
        surplus = self.ends - self.arrivals
        return waiting / surplus * 1000 if surplus > 0 else None


class AddTrends(Command[None], frozen=True):
    """Add what happened in some queues in the minute that begins at `at`."""

    at: int
    trends: Mapping[str, Trend]
