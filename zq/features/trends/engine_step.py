"""The open step: what happens in queues, and to types, until the next five seconds begin.

It is counted once a tick, never once a job.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import repeat
from sys import intern
from typing import Self

from zq.engine.after_commit import Committed
from zq.engine.engine import Engine
from zq.features.trends.model import (
    PARTS,
    STEP_MS,
    Trend,
    TypeName,
    TypeTrend,
    part_of,
    room_for,
    room_for_type,
)
from zq.model.commands import Fail, Succeed
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
        """The open step of an engine."""
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
        """Count what a tick did."""
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
    """The jobs that have failed by a report."""
    told = zip(committed.tick.commands, committed.result.replies, strict=True)
    return [c.key for c, reply in told if isinstance(c, Fail) and isinstance(reply, JobRecord)]
