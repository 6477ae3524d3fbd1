"""Trends of types: how often jobs of each type of a queue ended, and how long they ran."""

from collections.abc import Mapping

import msgspec

from zq.features.trends.model import DAY_MS, HOUR_MS, MINUTE_MS, REST
from zq.model.commands import Command

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
