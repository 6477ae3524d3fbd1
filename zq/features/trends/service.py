"""What happened over time: in queues, to the jobs of each type, and the marks of operators."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.engine.turns import Slices, Turns
from zq.features.trends.engine import TrendMeter
from zq.features.trends.model import (
    DAY_MS,
    FIVE_MINUTES_MS,
    HOUR_MS,
    MINUTE_MS,
    PARTS,
    REST_OF_TYPES,
    STEP_MS,
    TOTAL,
    TimeMark,
    Trend,
    TrendAt,
    TrendFlow,
    TrendRange,
    TypeName,
    TypeRange,
    TypeSort,
    TypeTrend,
    TypeTrendAt,
    quantile,
    quantiles,
    summed,
)
from zq.features.trends.store import TrendReads
from zq.model.clock import Clock
from zq.model.commands import WriteNote
from zq.model.errors import InvalidRequest, ScopeMissing
from zq.model.reach import EVERYWHERE, Reach
from zq.service.services import Services
from zq.store.api import Store


class _Scale(NamedTuple):
    """Points of `step` over `range`, from the trends of `length`, all in milliseconds."""

    range: int
    step: int
    length: int


_SCALES = {
    TrendRange.MINUTES: _Scale(5 * MINUTE_MS, STEP_MS, STEP_MS),
    TrendRange.HOUR: _Scale(HOUR_MS, MINUTE_MS, MINUTE_MS),
    TrendRange.DAY: _Scale(DAY_MS, 5 * MINUTE_MS, MINUTE_MS),
    TrendRange.WEEK: _Scale(7 * DAY_MS, HOUR_MS, HOUR_MS),
    TrendRange.QUARTER: _Scale(90 * DAY_MS, 8 * HOUR_MS, HOUR_MS),
}


class TrendSeries(NamedTuple):
    """Trends in their order, those of `step` milliseconds each. The last one is still open."""

    step: int
    points: list[TrendAt]
    open_ms: int
    """How much of the time of the last point has passed."""

    @property
    def sum(self) -> Trend:
        """What happened at all points together."""
        return summed([point.trend for point in self.points])


class Trends:
    """The trends that are stored, and the minute that is open in memory."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.clock, services.engine[TrendMeter])

    def __init__(self, store: Store, clock: Clock, meter: TrendMeter) -> None:
        self._reads = store.reads.of(TrendReads)
        self._clock = clock
        self._meter = meter

    async def series(self, queue: str | None, range: TrendRange, reach: Reach) -> TrendSeries:
        """The trends of a queue, or of all together. Raises `QueueOutOfReach` or `ScopeMissing`."""
        if queue is not None:
            reach.require([queue])
        elif reach is not EVERYWHERE:
            raise ScopeMissing("this key is limited to some queues: name one as `queue`")
        scale, now = _SCALES[range], self._clock.now_ms()
        first = now - now % scale.step - scale.range + scale.step
        name = TOTAL if queue is None else queue
        if scale.length == STEP_MS:
            began, found = self._meter.steps(name, first)
            # A clock that was set back shows a time before the start of the server.
            first = min(began, now - now % scale.step)
        else:
            found = await self._reads.trends(name, scale.length, first)
            found.append(TrendAt(self._meter.at, self._meter.open(name)))
        return TrendSeries(scale.step, _points(found, first, now, scale.step), now % scale.step)

    def times(self) -> dict[str, Trend]:
        """Trends since the start, by queue, whose times count. `*` stands for all other queues."""
        return self._meter.times.sums()

    def wait_ms(self, queue: str, share: float) -> float | None:
        """How long this share of the deliveries of the last minutes waited at most, if any."""
        return quantile(self._meter.recent(queue).wait, share)

    def flow(self, queue: str | None = None) -> TrendFlow:
        """The flow of a queue, or of all together."""
        return self._meter.flow(TOTAL if queue is None else queue)

    def flows(self) -> dict[str, TrendFlow]:
        """The flow of each queue that had any. `*` stands for queues that are not told apart."""
        return self._meter.flows()


def _points(found: Iterable[TrendAt], first: int, now: int, step: int) -> list[TrendAt]:
    """A point for each step from the first one until now, empty ones too."""
    points = {at: TrendAt(at, Trend()) for at in range(first, now + 1, step)}
    for each in found:
        point = points.get(each.at - each.at % step)
        if point is not None:
            point.trend.add(each.trend)
    return list(points.values())


NOTE = "marks"
"""The name under which they are stored."""

MOST_MARKS = 100
MOST_CHARACTERS = 200


class Marks:
    """The latest marks, the oldest first."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.clock, services.engine.inbox)

    def __init__(self, store: Store, clock: Clock, inbox: Inbox) -> None:
        self._reads = store.reads
        self._clock = clock
        self._inbox = inbox
        self._writing = asyncio.Lock()

    async def since(self, at: int) -> list[TimeMark]:
        """The marks from a time on, in milliseconds."""
        return [mark for mark in await self._all() if mark.at >= at]

    async def add(self, text: str) -> TimeMark:
        """Mark this moment. The oldest mark makes room. Raises `InvalidRequest`."""
        if not text.strip() or len(text) > MOST_CHARACTERS:
            raise InvalidRequest(f"`text` must have 1 to {MOST_CHARACTERS} characters")
        mark = TimeMark(self._clock.now_ms(), text)
        async with self._writing:
            marks = [*await self._all(), mark][-MOST_MARKS:]
            await self._inbox.ask(WriteNote(NOTE, msgspec.json.encode(marks).decode()))
        return mark

    async def _all(self) -> list[TimeMark]:
        return await self._reads.noted(NOTE, list[TimeMark]) or []


MOST_SHOWN = 200

STEPS = 150
"""The work for one type, in steps of `zq.engine.turns`."""

LEAST_RUNS = 20
"""A type that has run less often has no usual run."""


class _TypeScale(NamedTuple):
    many: int
    length: int


SCALES = {
    TypeRange.HOUR: _TypeScale(12, FIVE_MINUTES_MS),
    TypeRange.DAY: _TypeScale(24, HOUR_MS),
    TypeRange.WEEK: _TypeScale(7, DAY_MS),
}
"""The number of steps of each range and their length; the last step is open."""


class Runs(NamedTuple):
    """The times in milliseconds that 50, 95 and 99 % of the runs do not exceed."""

    p50: float
    p95: float
    p99: float


class TypeFigures(NamedTuple):
    """How jobs of one type of a queue ended. The queue `*` with the type `*` is the rest."""

    queue: str
    type: str
    trend: TypeTrend
    run: Runs | None

    @property
    def ended(self) -> int:
        """How many of them ended by a report."""
        return self.trend.done + self.trend.failed

    @property
    def failed_share(self) -> float:
        """Which part of these failed."""
        return self.trend.failed / self.ended if self.ended else 0.0


class TypesFound(NamedTuple):
    """The types of a range of time: the first ones, and how many there are."""

    seconds: float
    """How much of the range has passed."""
    known: int
    first: Sequence[TypeFigures]


class TypeSeries(NamedTuple):
    """The trend of a type step by step, each of `step` milliseconds, the last one still open."""

    step: int
    open_ms: int
    points: Sequence[tuple[int, TypeTrend]]
    """When each step begins, in milliseconds, and what happened in it."""


_SORTS: dict[TypeSort, Callable[[TypeFigures], Any]] = {
    TypeSort.SLOWEST: lambda look: -look.run.p95 if look.run else 0.0,
    TypeSort.FAILING: lambda look: (-look.failed_share, -look.trend.failed),
    TypeSort.RATE: lambda look: -look.ended,
}


class TypeTrends:
    """The trends of types that are stored, and the minute that is open in memory."""

    @classmethod
    def of(cls, services: Services) -> Self:
        meter = services.engine[TrendMeter]
        return cls(services.store, services.clock, meter, services.turns)

    def __init__(self, store: Store, clock: Clock, meter: TrendMeter, turns: Turns) -> None:
        self._reads = store.reads.of(TrendReads)
        self._clock = clock
        self._meter = meter
        self._turns = turns

    async def read(
        self, queue: str | None, type: str | None, over: TypeRange, sort: TypeSort, reach: Reach
    ) -> TypesFound:
        """The types of a queue, or of all, over a range of time. Raises `QueueOutOfReach`."""
        scale, now = SCALES[over], self._clock.now_ms()
        first = _first(scale, now)
        found = await self._found(queue, type, scale, scale.many * scale.length, reach)
        slices, looks = Slices(self._turns), list[TypeFigures]()
        for name, trend in _together(found).items():
            looks.append(TypeFigures(*name, trend, runs_of(trend)))
            await slices.count(STEPS)
        looks.sort(key=lambda look: (_SORTS[sort](look), -look.ended, look.queue, look.type))
        return TypesFound((now - first) / 1000, len(looks), looks[:MOST_SHOWN])

    async def series(
        self, queue: str | None, type: str, over: TypeRange, reach: Reach
    ) -> TypeSeries:
        """The trend of one type, in one queue or in all together, step by step."""
        scale, now = SCALES[over], self._clock.now_ms()
        first = _first(scale, now)
        steps = [TypeTrend() for _ in range(scale.many)]
        for each in await self._found(queue, type, scale, scale.length, reach):
            if each.step < len(steps):
                steps[each.step].add(each.trend)
        points = [(first + number * scale.length, trend) for number, trend in enumerate(steps)]
        return TypeSeries(scale.length, now % scale.length, points)

    async def usual_ms(self, queue: str) -> dict[str, float]:
        """The time that 99 % of the runs of each type of a queue took within a day."""
        found = await self._found(queue, None, SCALES[TypeRange.DAY], DAY_MS, EVERYWHERE)
        trends = {type: trend for (_, type), trend in _together(found).items()}
        return {
            type: quantiles(trend.run, (0.99,), PARTS)[0]
            for type, trend in trends.items()
            if sum(trend.run.values()) >= LEAST_RUNS
        }

    async def _found(
        self, queue: str | None, type: str | None, scale: _TypeScale, step: int, reach: Reach
    ) -> list[TypeTrendAt]:
        """The stored hours and those that are not stored yet, as far as the reach goes."""
        if queue is not None:
            reach.require([queue])
        first = _first(scale, self._clock.now_ms())
        found = await self._reads.type_trends(queue, type, scale.length, first, step)
        number = (self._meter.at - first) // step
        for name, trend in self._meter.open_types().items():
            if queue in (None, name[0]) and type in (None, name[1]):
                found.append(TypeTrendAt(*name, number, trend))
        if reach is EVERYWHERE:
            return found
        return [
            each
            for each in found
            if (each.queue, each.type) != REST_OF_TYPES and reach.covers(each.queue)
        ]


def runs_of(trend: TypeTrend) -> Runs | None:
    """The percentiles of the runs of a type, if there are any."""
    found = quantiles(trend.run, (0.5, 0.95, 0.99), PARTS)
    return Runs(*found) if found else None


def _first(scale: _TypeScale, now: int) -> int:
    """When the first step begins."""
    return now - now % scale.length - (scale.many - 1) * scale.length


def _together(found: Sequence[TypeTrendAt]) -> dict[TypeName, TypeTrend]:
    trends: dict[TypeName, TypeTrend] = {}
    for each in found:
        trends.setdefault((each.queue, each.type), TypeTrend()).add(each.trend)
    return trends
