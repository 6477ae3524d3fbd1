"""The last hour of a queue: since when it fails, and how many of its jobs waited.

Each hour is read seldom, since many looks ask for the same ones.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

from zq.features.diagnosis.model_findings import FAILING_SHARE, Beginning
from zq.features.trends.model import HOUR_MS, MINUTE_MS, TrendAt, TrendRange
from zq.features.trends.service import Trends
from zq.features.trends.service_marks import Marks
from zq.model.clock import Clock
from zq.model.reach import EVERYWHERE
from zq.service.services import Services

KEPT_MS = MINUTE_MS
MOST_KEPT = 1_000

MOST_READS = 10
"""The most queues whose hours one question reads; the others are known later."""

MARK_MS = 10 * MINUTE_MS
"""The longest time in ms between a mark and the failures that are told with it."""

BUCKET_MS = 5 * MINUTE_MS


class _Hour(NamedTuple):
    """An hour as it was read at a time (ms): its minutes, and how many jobs waited then."""

    read_at: int
    points: Sequence[TrendAt]
    line: list[int]


class Lookback:
    """Remembers the hours that were asked for."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The look back of a server."""
        return cls(services.clock, services[Trends], services[Marks])

    def __init__(self, clock: Clock, trends: Trends, marks: Marks) -> None:
        self._clock = clock
        self._trends = trends
        self._marks = marks
        self._hours: dict[str | None, _Hour] = {}
        self._failed_at = float("-inf")
        self._failed: float | None = None

    async def failing(self, queue: str, waiting: int) -> Beginning:
        """Since when a queue fails, as far back as an hour, and the mark before that."""
        since = None
        for point in reversed((await self._hour(queue, waiting)).points):
            attempts = point.trend.completed + point.trend.failed
            if attempts and point.trend.failed < FAILING_SHARE * attempts:
                break
            if attempts:
                since = point.at
        if since is None:
            return Beginning()
        marks = await self._marks.since(since - MARK_MS)
        before = [mark.text for mark in marks if mark.at < since + MINUTE_MS]
        return Beginning(since, before[-1] if before else "")

    async def failed_before(self) -> float | None:
        """The share of the attempts of all queues that failed in the hour before the last one."""
        now = self._clock.now_ms()
        if now - self._failed_at >= KEPT_MS:
            series = await self._trends.series(None, TrendRange.DAY, EVERYWHERE)
            before = [p.trend for p in series.points if HOUR_MS < now - p.at <= 2 * HOUR_MS]
            attempts = sum(trend.completed + trend.failed for trend in before)
            failed = sum(trend.failed for trend in before)
            self._failed_at, self._failed = now, failed / attempts if attempts else None
        return self._failed

    async def waiting(self, now_waiting: dict[str | None, int]) -> dict[str | None, list[int]]:
        """How many jobs waited every five minutes of the last hour, as far as that is known.

        `now_waiting` says how many wait now, by queue; None stands for all queues. Before, there
        were fewer by what has come since then, and more by what has ended. The answer is up to a
        minute old, so that it seldom changes.
        """
        reads, found = 0, dict[str | None, list[int]]()
        for queue, waiting in now_waiting.items():
            if not self._is_known(queue):
                reads += 1
                if reads > MOST_READS:
                    continue
            found[queue] = (await self._hour(queue, waiting)).line
        return found

    def _is_known(self, queue: str | None) -> bool:
        hour = self._hours.get(queue)
        return hour is not None and self._clock.now_ms() - hour.read_at < KEPT_MS

    async def _hour(self, queue: str | None, waiting: int) -> _Hour:
        if not self._is_known(queue):
            points = (await self._trends.series(queue, TrendRange.HOUR, EVERYWHERE)).points
            self._hours.pop(queue, None)
            self._hours[queue] = _Hour(self._clock.now_ms(), points, _line(points, waiting))
            if len(self._hours) > MOST_KEPT:
                del self._hours[next(iter(self._hours))]
        return self._hours[queue]


def _line(points: Sequence[TrendAt], waiting: int) -> list[int]:
    """The numbers of waiting jobs at the ends of the five minutes of an hour, the last one now."""
    found = [waiting]
    last = points[-1].at if points else 0
    for bucket in range(HOUR_MS // BUCKET_MS - 1):
        end = last - bucket * BUCKET_MS
        some = [p.trend for p in points if end - BUCKET_MS < p.at <= end]
        waiting += sum(trend.left - trend.enqueued for trend in some)
        found.append(max(waiting, 0))
    return found[::-1]
