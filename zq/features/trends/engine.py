"""Counts steps of five seconds, has each minute of them stored, and remembers the last ones.

Steps are counted once a tick, never once a job. A crash loses the minute that has not ended yet.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice, repeat
from sys import intern
from typing import Self

import msgspec

from zq.engine.after_commit import Awaited, Committed
from zq.engine.engine import Engine, RunningPart
from zq.engine.inbox import Inbox
from zq.features.trends.model import (
    MINUTE_MS,
    PARTS,
    REST,
    STEP_MS,
    TOTAL,
    AddTrends,
    AddTypeTrends,
    Trend,
    TrendAt,
    TrendFlow,
    TypeName,
    TypeTrend,
    part_of,
    room_for,
    room_for_type,
    summed,
)
from zq.model.clock import Clock, Timer
from zq.model.commands import Fail, Succeed
from zq.model.errors import ZqError
from zq.model.events import EventType
from zq.model.job import JobRecord

MOST_TIMED = 100_000
"""Of this many jobs in flight it is known when they were delivered. Others are not timed."""

MOST_RUNS = 2_000
"""The most different runs that are kept apart before the step is over; beyond it, they are added
up."""

_ENDS = {EventType.FAILED: "died", EventType.EXPIRED: "expired"}


class OpenTrends:
    """The open step of each queue and each type, until `when_over` takes it away."""

    @classmethod
    def of(cls, _engine: Engine) -> Self:
        return cls()

    def __init__(self) -> None:
        self.listens = True
        self.at = 0
        """When it began, in milliseconds."""
        self.trends: dict[str, Trend] = {}
        self.types: dict[TypeName, TypeTrend] = {}
        self.when_over: Callable[[int], object] = lambda _: None
        """Called with the time of the tick that does not belong to this step."""
        self._delivered: dict[int, tuple[str, str, int]] = {}
        """Queue, type and steady time of the deliveries that have not ended, by job."""
        self._runs: dict[tuple[str, str, int], int] = {}
        """Runs by queue, type and milliseconds, until they are added up."""
        self._failed: Counter[TypeName] = Counter()
        self._revoked: Counter[TypeName] = Counter()

    def learn(self, committed: Committed) -> None:
        result, now = committed.result, committed.tick.now
        if not 0 <= now - self.at < STEP_MS:
            self.when_over(now)
        for arrived in result.arrived:
            for (queue, _), n in arrived.items():
                self._of(queue).enqueued += n
        if result.traffic:
            for kind, counts in result.traffic:
                self._add(kind, counts)
        for type, jobs in result.news:
            if type in _ENDS:
                self._add(_ENDS[type], Counter([job.queue for job in jobs]))
        if result.claimed:
            self._begin(committed)
        if result.ended and self._delivered:
            self._end(committed)

    def add_up(self) -> None:
        """Add the runs to the trends of their queues and types.

        It is done for each look and at the end of the step, so that ticks have less to do.
        """
        runs, self._runs = self._runs, {}
        for (queue, type, ms), n in runs.items():
            part = part_of(max(ms, 0))
            power, times = part // PARTS, self._of(queue).run
            times[power] = times.get(power, 0) + n
            trend = room_for_type(self.types, (queue, type))
            trend.run[part] = trend.run.get(part, 0) + n
            trend.done += n
        for counts in (self._failed, self._revoked):
            for name, n in counts.items():
                trend = room_for_type(self.types, name)
                trend.done -= n
                trend.failed += n if counts is self._failed else 0
            counts.clear()

    def _of(self, queue: str) -> Trend:
        trend = self.trends.get(queue)
        if trend is None:
            trend = room_for(self.trends, queue)
        return trend

    def _add(self, kind: str, counts: Counter[str]) -> None:
        for queue, n in counts.items():
            trend = self._of(queue)
            setattr(trend, kind, getattr(trend, kind) + n)

    def _begin(self, committed: Committed) -> None:
        """Count how long jobs have waited, and note when they were delivered.

        Runs are measured in steady time. A wait begins at a date, so a clock that is set meanwhile
        makes it longer or shorter.
        """
        now, steady = committed.tick.now, committed.tick.steady
        for jobs in committed.result.claimed:
            waited = Counter([(job.queue, job.ready_at) for job in jobs])
            for (queue, ready_at), n in waited.items():
                times, power = self._of(queue).wait, max(now - ready_at, 0).bit_length()
                times[power] = times.get(power, 0) + n
            if len(self._delivered) < MOST_TIMED:
                # All jobs of a type share its name: they are compared quickly, and take less room.
                self._delivered.update(
                    [(job.key, (intern(job.queue), intern(job.type), steady)) for job in jobs]
                )

    def _end(self, committed: Committed) -> None:
        """Count how long jobs ran. One that was given back did not run to its end."""
        result = committed.result
        ended = [key for _, key in result.ended]
        if result.tally.returned:
            reported = _reported(committed)
            for key in ended:
                if key not in reported:
                    self._delivered.pop(key, None)
        for kind, _ in result.traffic:
            if kind == "failed":
                self._count(self._failed, _failed(committed))
                break
        if result.revoked:
            self._count(self._revoked, result.revoked)
        runs = self._runs
        for mark, n in Counter(map(self._delivered.pop, ended, repeat(None))).items():
            if mark is not None:
                queue, type, since = mark
                place = queue, type, committed.tick.steady - since
                runs[place] = runs.get(place, 0) + n
        if len(runs) > MOST_RUNS:
            self.add_up()

    def _count(self, counts: Counter[TypeName], keys: Iterable[int]) -> None:
        marks = [self._delivered.get(key) for key in keys]
        counts.update([mark[:2] for mark in marks if mark is not None])


def _reported(committed: Committed) -> set[int]:
    """The jobs of which a worker reported the end."""
    keys: set[int] = set()
    for command in committed.tick.commands:
        if isinstance(command, Succeed):
            keys.update(command.keys)
        elif isinstance(command, Fail):
            keys.add(command.key)
    return keys


def _failed(committed: Committed) -> list[int]:
    told = zip(committed.tick.commands, committed.result.replies, strict=True)
    return [c.key for c, reply in told if isinstance(c, Fail) and isinstance(reply, JobRecord)]


MOST_NAMED = 50
"""How many queues are counted by name. What a scrape costs must not grow with the queues."""


class QueueTimes:
    """Adds up the steps that are over. Only the times in its trends are of use.

    A queue keeps its name: what was once counted never becomes less.
    """

    def __init__(self, step: OpenTrends) -> None:
        self._open = step
        self._sums: dict[str, Trend] = {}

    def add(self, step: Mapping[str, Trend]) -> None:
        """Add a step that is over."""
        for queue, trend in step.items():
            self._of(queue).add(trend)

    def sums(self) -> dict[str, Trend]:
        """All so far. `REST` stands for all queues without a name."""
        found: dict[str, Trend] = {}
        self._open.add_up()
        for queue in self._open.trends:
            self._of(queue)
        for queue, trend in (*self._sums.items(), *self._open.trends.items()):
            name = queue if queue in self._sums else REST
            found.setdefault(name, Trend()).add(trend)
        return found

    def _of(self, queue: str) -> Trend:
        if queue not in self._sums and len(self._sums) >= MOST_NAMED:
            queue = REST
        return self._sums.setdefault(queue, Trend())


log = logging.getLogger(__name__)

RECENT = 5
"""How many of the last minutes stay in memory, the open one among them. So do their steps."""

SLICE = 100
"""How many queues, or types, are stored at a time."""

Minute = dict[str, Trend]

_packed = msgspec.msgpack.Encoder()
_trend = msgspec.msgpack.Decoder(Trend)


class TrendMeter(RunningPart):
    """Turns the steps and the minutes."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        return cls(engine.clock, engine.inbox, engine[OpenTrends])

    def __init__(self, clock: Clock, inbox: Inbox, step: OpenTrends) -> None:
        self._clock = clock
        self._inbox = inbox
        self.step = step
        self.step.when_over = self._turn
        self.times = QueueTimes(self.step)
        self._timer: Timer | None = None
        self._began = clock.now_ms()
        self._minute: Minute = {}
        """The steps of the open minute that are over."""
        self._types: dict[TypeName, TypeTrend] = {}
        """The types in them."""
        self._closed: deque[tuple[int, Minute]] = deque(maxlen=RECENT)
        self._steps: deque[tuple[int, dict[str, bytes]]] = deque(
            maxlen=RECENT * MINUTE_MS // STEP_MS
        )
        """The steps that are over, packed: a trend takes a tenth of the memory."""

    def start(self) -> None:
        """Begin: from now on each minute is stored when it is over."""
        self._ring()

    async def stop(self) -> None:
        """Have the open minute stored: the engine is about to end."""
        if self._timer is not None:
            self._timer.cancel()
        self._turn(self.step.at)
        self._store()

    @property
    def at(self) -> int:
        """When the open minute began, in milliseconds."""
        return self.step.at - self.step.at % MINUTE_MS

    def open(self, queue: str) -> Trend:
        """The open minute of a queue, or of all of them (`TOTAL`)."""
        self.step.add_up()
        return summed([_of(self._minute, queue), _of(self.step.trends, queue)])

    def open_types(self) -> dict[TypeName, TypeTrend]:
        """The open minute of the types."""
        self.step.add_up()
        found: dict[TypeName, TypeTrend] = {}
        for name, trend in (*self._types.items(), *self.step.types.items()):
            room_for_type(found, name).add(trend)
        return found

    def steps(self, queue: str, since: int) -> tuple[int, list[TrendAt]]:
        """The steps of a queue, or of all of them, and from when on they are known.

        None is known that began before `since`, or before the server did.
        """
        self.step.add_up()
        first = max(since, self._began - self._began % STEP_MS)
        found = [
            TrendAt(at, _trend.decode(step[queue]))
            for at, step in self._steps
            if at >= first and queue in step
        ]
        return first, [*found, TrendAt(self.step.at, _of(self.step.trends, queue))]

    def recent(self, queue: str) -> Trend:
        """The last minutes of a queue, or of all of them."""
        return summed([_of(minute, queue) for minute in self._recent()[0]])

    def flow(self, queue: str) -> TrendFlow:
        """The flow of the last minutes: arrivals and ends."""
        trend, seconds = self.recent(queue), self._recent()[1]
        return TrendFlow(trend.enqueued / seconds, trend.left / seconds, trend.died / seconds)

    def flows(self) -> dict[str, TrendFlow]:
        """The flow of each queue that had any."""
        minutes, seconds = self._recent()
        came: dict[str, int] = {}
        left: dict[str, int] = {}
        died: dict[str, int] = {}
        for minute in minutes:
            for queue, trend in minute.items():
                came[queue] = came.get(queue, 0) + trend.enqueued
                left[queue] = left.get(queue, 0) + trend.left
                died[queue] = died.get(queue, 0) + trend.died
        return {
            queue: TrendFlow(n / seconds, left[queue] / seconds, died[queue] / seconds)
            for queue, n in came.items()
        }

    def _recent(self) -> tuple[list[Minute], float]:
        """The last minutes, and how many seconds these are."""
        now = self._clock.now_ms()
        first = now - now % MINUTE_MS - (RECENT - 1) * MINUTE_MS
        minutes = [*self._closed, (self.at, self._minute), (self.at, self.step.trends)]
        since = max(first, min(self._began, now - 1000))
        return [minute for at, minute in minutes if first <= at <= now], (now - since) / 1000

    def _ring(self) -> None:
        now = self._clock.now_ms()
        if not 0 <= now - self.step.at < STEP_MS:
            self._turn(now)
        rest = STEP_MS - now % STEP_MS
        self._timer = self._clock.call_later(rest / 1000, self._ring)

    def _turn(self, now: int) -> None:
        """Add the open step to its minute, and open the one of now. Store a minute that is over."""
        self.step.add_up()
        step, at, minute = self.step.trends, self.step.at, self.at
        if step:
            for queue, trend in step.items():
                room_for(self._minute, queue).add(trend)
            self.times.add(step)
            packed = {queue: _packed.encode(trend) for queue, trend in step.items()}
            self._steps.append((at, {**packed, TOTAL: _packed.encode(_of(step, TOTAL))}))
        for name, counts in self.step.types.items():
            room_for_type(self._types, name).add(counts)
        self.step.trends, self.step.types = {}, {}
        if minute != now - now % MINUTE_MS:
            self._store()
        self.step.at = now - now % STEP_MS

    def _store(self) -> None:
        minute, self._minute = self._minute, {}
        types, self._types = self._types, {}
        if not minute:
            return
        self._closed.append((self.at, minute))
        rows = iter({**minute, TOTAL: _of(minute, TOTAL)}.items())
        rows_of_types = iter(types.items())
        try:
            while some := dict(islice(rows, SLICE)):
                self._inbox.submit(AddTrends(self.at, some))
            while some_types := dict(islice(rows_of_types, SLICE)):
                self._inbox.submit(AddTypeTrends(self.at, some_types))
        except ZqError as error:
            log.warning(f"the figures of a minute could not be stored: {error}")


def _of(minute: Minute, queue: str) -> Trend:
    if queue == TOTAL:
        return summed(list(minute.values()))
    return minute.get(queue) or Trend()


SUBSCRIBERS = ((Awaited.BY_NOBODY, OpenTrends),)
RUNNING = (TrendMeter,)
