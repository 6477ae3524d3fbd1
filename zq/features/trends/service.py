"""The verb that tells what happened over the last minutes, hours or days."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from zq.features.trends.engine import TrendMeter
from zq.features.trends.model import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    STEP_MS,
    TOTAL,
    Trend,
    TrendAt,
    TrendFlow,
    TrendRange,
    quantile,
    summed,
)
from zq.features.trends.store import TrendReads
from zq.model.clock import Clock
from zq.model.errors import ScopeMissing
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
        """The trends of a server."""
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
            first, found = self._meter.steps(name, first)
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
