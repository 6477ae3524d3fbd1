"""Has each minute stored when it is over, and remembers the last ones.

A crash loses the minute that has not ended yet.
"""

import logging
from collections import deque
from itertools import islice

from zq.engine.inbox import Inbox
from zq.engine.news.figures import OpenMinute
from zq.engine.news.times import QueueTimes
from zq.model.clock import Clock, Timer
from zq.model.errors import ZqError
from zq.model.trends import MINUTE_MS, TOTAL, AddTrends, Trend, TrendFlow, summed

log = logging.getLogger(__name__)

RECENT = 5
"""How many of the last minutes stay in memory, the open one among them."""

SLICE = 100
"""How many queues are stored at a time."""

Minute = dict[str, Trend]


class TrendMeter:
    """Turns the minutes."""

    def __init__(self, clock: Clock, inbox: Inbox, minute: OpenMinute) -> None:
        self._clock = clock
        self._inbox = inbox
        self._open = minute
        self._open.when_over = self._turn
        self.times = QueueTimes(minute)
        self._timer: Timer | None = None
        self._began = clock.now_ms()
        self._closed: deque[tuple[int, Minute]] = deque(maxlen=RECENT)

    def start(self) -> None:
        """Begin: from now on each minute is stored when it is over."""
        self._turn(self._clock.now_ms())
        self._ring()

    def close(self) -> None:
        """Have the open minute stored: the engine is about to end."""
        if self._timer is not None:
            self._timer.cancel()
        self._turn(self._open.at)

    @property
    def at(self) -> int:
        """When the open minute began, in milliseconds."""
        return self._open.at

    def open(self, queue: str) -> Trend:
        """What has happened in a queue, or in all of them (`TOTAL`), in the open minute."""
        return _of(self._open.trends, queue)

    def flow(self, queue: str) -> TrendFlow:
        """What came there in the last minutes, and what was done with."""
        minutes, seconds = self._recent()
        trend = summed([_of(minute, queue) for minute in minutes])
        return TrendFlow(trend.enqueued / seconds, trend.left / seconds)

    def flows(self) -> dict[str, TrendFlow]:
        """The flow of each queue that had any."""
        minutes, seconds = self._recent()
        came: dict[str, int] = {}
        left: dict[str, int] = {}
        for minute in minutes:
            for queue, trend in minute.items():
                came[queue] = came.get(queue, 0) + trend.enqueued
                left[queue] = left.get(queue, 0) + trend.left
        return {queue: TrendFlow(n / seconds, left[queue] / seconds) for queue, n in came.items()}

    def _recent(self) -> tuple[list[Minute], float]:
        """The last minutes, and how many seconds these are."""
        now = self._clock.now_ms()
        first = now - now % MINUTE_MS - (RECENT - 1) * MINUTE_MS
        minutes = [*self._closed, (self._open.at, self._open.trends)]
        since = max(first, min(self._began, now - 1000))
        return [minute for at, minute in minutes if first <= at <= now], (now - since) / 1000

    def _ring(self) -> None:
        now = self._clock.now_ms()
        if now - self._open.at >= MINUTE_MS:
            self._turn(now)
        rest = MINUTE_MS - now % MINUTE_MS
        self._timer = self._clock.call_later(rest / 1000, self._ring)

    def _turn(self, now: int) -> None:
        """Have the open minute stored, and open the one of now."""
        minute, at = self._open.trends, self._open.at
        self._open.at, self._open.trends = now - now % MINUTE_MS, {}
        if not minute:
            return
        self._closed.append((at, minute))
        self.times.add(minute)
        rows = iter({**minute, TOTAL: _of(minute, TOTAL)}.items())
        try:
            while some := dict(islice(rows, SLICE)):
                self._inbox.submit(AddTrends(at, some))
        except ZqError as error:
            log.warning(f"the figures of a minute could not be stored: {error}")


def _of(minute: Minute, queue: str) -> Trend:
    if queue == TOTAL:
        return summed(list(minute.values()))
    return minute.get(queue) or Trend()
