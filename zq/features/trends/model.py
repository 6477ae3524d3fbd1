"""Trends: what happened in a queue in one minute, or in one hour, in a few numbers."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from zq.model.commands import Command

STEP_MS, MINUTE_MS, HOUR_MS, DAY_MS = 5_000, 60_000, 3_600_000, 86_400_000
"""Events are counted in steps. They are added up to minutes, and these to hours."""

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
    """The sum of trends."""
    found = Trend()
    for trend in trends:
        found.add(trend)
    return found


def room_for(trends: dict[str, Trend], queue: str) -> Trend:
    """The trend of a queue among others, or that of the rest if there are too many."""
    if queue not in trends and len(trends) >= MOST_QUEUES:
        queue = REST
    return trends.setdefault(queue, Trend())


def quantile(times: Mapping[int, int], share: float) -> float | None:
    """The time in milliseconds that this share of the times does not exceed; None without times."""
    return next(iter(quantiles(times, (share,))), None)


def quantiles(times: Mapping[int, int], shares: Iterable[float], parts: int = 1) -> list[float]:
    """The times that these shares do not exceed, which ascend; none without times.

    Each power of two may be divided into equal parts. Within a part, times are taken to be evenly
    spread. The true time lies in the same part, so the answer is at most twice as large and at
    least half as large; with four parts, it is off by a quarter at most.
    """
    found: list[float] = []
    counts = iter(sorted(times.items()))
    total, below, place, n = sum(times.values()), 0, 0, 0
    for share in shares if total else ():
        while not n or share * total > below + n:
            below += n
            place, n = next(counts)
        power, part = divmod(place, parts)
        lowest = 2.0**power / 2
        spread = part + (share * total - below) / n
        found.append(lowest * (1 + spread / parts) if power else 0.0)
    return found


class TrendFlow(NamedTuple):
    """The flow of a queue in the last five minutes: arrivals and ends, in jobs a second."""

    arrivals: float = 0.0
    ends: float = 0.0
    died: float = 0.0
    """The part of `ends` that is dead, in jobs a second."""

    def drained_ms(self, waiting: int) -> float | None:
        """The time in ms that this many waiting jobs take at this rate; None if they never become
        fewer."""
        if not waiting:
            return 0.0
        surplus = self.ends - self.arrivals
        return waiting / surplus * 1000 if surplus > 0 else None


class AddTrends(Command[None], frozen=True):
    """Add what happened in some queues in the minute that begins at `at`."""

    at: int
    trends: Mapping[str, Trend]


class TrendRange(StrEnum):
    """How far back to look."""

    MINUTES = "5m"
    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    QUARTER = "90d"


class TypeRange(StrEnum):
    """How far back to look."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"


class TypeSort(StrEnum):
    """Which types come first."""

    SLOWEST = "slowest"
    FAILING = "failing"
    RATE = "rate"


FIVE_MINUTES_MS = 5 * MINUTE_MS

KEPT_TYPES_MS = {FIVE_MINUTES_MS: 2 * HOUR_MS, HOUR_MS: 2 * DAY_MS, DAY_MS: 8 * DAY_MS}
"""How long trends of types are kept, by their length."""

MOST_TYPES = 1_000
"""How many types have a trend of their own in a minute, a length of those above, or an answer. A
type counts once for each queue that it has jobs in."""

TypeName = tuple[str, str]
"""A queue, and a type of its jobs."""

REST_OF_TYPES: TypeName = (REST, REST)
"""Stands for all other types. No queue can have this name."""

PARTS = 4
"""Into how many parts each power of two is divided, for runs by type."""


class TypeTrend(msgspec.Struct, array_like=True):
    """Jobs of a type by what became of them, and how long they ran, by `part_of`."""

    done: int = 0
    failed: int = 0
    """Reported failures, whatever happened to the job then."""
    run: dict[int, int] = {}
    """From a delivery until it ended by a report, or by a cancellation."""

    def add(self, other: "TypeTrend") -> None:
        """Add the counts of another one."""
        self.done += other.done
        self.failed += other.failed
        for part, n in other.run.items():
            self.run[part] = self.run.get(part, 0) + n


class TypeTrendAt(msgspec.Struct, array_like=True):
    """The trend of a type in one of several steps of time, by its number."""

    queue: str
    type: str
    step: int
    trend: TypeTrend


class AddTypeTrends(Command[None], frozen=True):
    """Add how jobs of some types ended in the minute that begins at `at`."""

    at: int
    trends: Mapping[TypeName, TypeTrend]


def room_for_type(trends: dict[TypeName, TypeTrend], name: TypeName) -> TypeTrend:
    """The trend of a type among others, or that of the rest if there are too many."""
    if name not in trends and len(trends) >= MOST_TYPES:
        name = REST_OF_TYPES
    return trends.setdefault(name, TypeTrend())


def part_of(ms: int) -> int:
    """The part that a time in milliseconds is counted in: four for each power of two.

    Divided by four, it is the power, as a trend of a queue has it.
    """
    power = ms.bit_length()
    return PARTS * power + (ms << 2 >> power - 1 & 3) if power else 0
