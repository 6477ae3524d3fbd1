"""The verb that tells which causes failures have."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Self

from zq.engine.turns import Slices, Turns
from zq.features.failures.model import (
    BARS,
    OTHER,
    Bars,
    FailureGroup,
    FailureOrder,
    FailureRange,
    FailureRow,
    by_cause,
    grouped,
)
from zq.features.failures.store import FailureReads
from zq.features.trends.service import Marks
from zq.model.clock import Clock
from zq.model.reach import EVERYWHERE, Reach
from zq.service.services import Services
from zq.store.api import Store


def _by_count(group: FailureGroup) -> tuple[int, int, str]:
    return (-group.count, -group.last_seen, group.signature)


_ORDERS: dict[FailureOrder, Callable[[FailureGroup], Any]] = {
    FailureOrder.COUNT: _by_count,
    FailureOrder.QUEUE: lambda group: (group.queues[0], _by_count(group)),
    FailureOrder.TIME: lambda group: (-group.last_seen, _by_count(group)),
}


class Depth(NamedTuple):
    """How many groups are told of, and how many of their latest failures are looked at together."""

    groups: int
    failures: int

    def each(self, groups: int) -> int:
        """The number of failures that are examined of each of this many groups."""
        return min(self.failures // groups, MOST_DEAD)


MOST_DEAD = 5_000

WHOLE = Depth(200, 100_000)
BRIEF = Depth(20, 20_000)
"""The overview asks again and again."""

NAMES_ALONE = Depth(200, 200)
"""For those who do not ask for dead jobs."""

LASTS_S, LONGEST_S, SHARE = 2.0, 30.0, 0.01
"""A brief answer is given again for so many seconds, and for longer if looks would otherwise take
more than this share of the time."""

STEPS = 200
"""The work for one group, in steps of `zq.engine.turns`."""


class CausesFound(NamedTuple):
    """The failures of a range of time, by their causes."""

    since: int
    """When the first bar of each group begins, in milliseconds."""
    open_ms: int
    """How much of the last bar's time has passed."""
    total: int
    """How many causes there are."""
    first: list[FailureGroup]
    failed: int
    failed_before: int
    """How many failures came in as long a time before the range, by these causes."""

    @property
    def figures(self) -> dict[str, int]:
        """The figures of all causes, by the names that clients know."""
        return {
            "since": self.since,
            "open_ms": self.open_ms,
            "known": self.total,
            "failed": self.failed,
            "failed_before": self.failed_before,
        }


class Failures:
    """Groups of failures. A bounded reach sees only what happened in its queues."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.clock, services[Marks], services.turns)

    def __init__(self, store: Store, clock: Clock, marks: Marks, turns: Turns) -> None:
        self._reads = store.reads.of(FailureReads)
        self._clock = clock
        self._marks = marks
        self._turns = turns
        self._looks: dict[Reach, tuple[float, CausesFound]] = {}
        """The latest brief answers, and how long they last."""
        self._looking = asyncio.Lock()

    async def causes(self, reach: Reach) -> CausesFound:
        """The first causes of the last 60 minutes, as they were a few seconds ago."""
        async with self._looking:
            began = self._clock.monotonic()
            self._looks = {r: look for r, look in self._looks.items() if began < look[0]}
            if reach not in self._looks:
                found = await self.groups(reach, depth=BRIEF)
                took = self._clock.monotonic() - began
                lasts = min(max(LASTS_S, took / SHARE), LONGEST_S)
                self._looks[reach] = began + lasts, found
            return self._looks[reach][1]

    async def groups(
        self,
        reach: Reach,
        queues: Collection[str] = (),
        range: FailureRange = FailureRange.HOUR,
        order: FailureOrder = FailureOrder.COUNT,
        depth: Depth = WHOLE,
    ) -> CausesFound:
        """The causes of failures in these queues, or in any, over a range of time."""
        now, bars = self._clock.now_ms(), BARS[range]
        begin = bars.begin(now)
        rows = await self._reads.failures(begin - bars.many * bars.width, bars.width, bars.length)
        seen = [
            row
            for row in rows
            if (not queues or row.queue in queues)
            and (reach is EVERYWHERE or (row.signature != OTHER and reach.covers(row.queue)))
        ]
        groups = sorted(await self._groups(seen, bars, now), key=_ORDERS[order])
        first = groups[: depth.groups]
        bounded = bool(queues) or reach is not EVERYWHERE
        within = sorted({row.queue for row in seen}) if bounded else None
        await self._count_dead(first, within, depth.each(max(len(first), 1)))
        await self._set_marks(first)
        return CausesFound(
            begin,
            bars.passed(now) - (bars.many - 1) * bars.width,
            len(groups),
            first,
            sum(group.count for group in groups),
            sum(group.before for group in groups),
        )

    async def _groups(self, rows: Sequence[FailureRow], bars: Bars, now: int) -> list[FailureGroup]:
        slices, groups = Slices(self._turns), list[FailureGroup]()
        for those in by_cause(rows):
            groups.append(grouped(those, bars, now))
            await slices.count(STEPS)
        return [group for group in groups if group.count]

    async def _count_dead(
        self, groups: Sequence[FailureGroup], queues: Sequence[str] | None, most: int
    ) -> None:
        signatures = [group.signature for group in groups if group.signature != OTHER]
        dead = await self._reads.dead_of(signatures, queues, most) if signatures else {}
        for group in groups:
            group.dead, group.more_dead = dead.get(group.signature, (0, False))

    async def _set_marks(self, groups: Sequence[FailureGroup]) -> None:
        marks = await self._marks.since(0) if groups else []
        for group in groups:
            place = bisect_right(marks, group.first_seen, key=lambda mark: mark.at)
            group.mark = marks[place - 1] if place else None
