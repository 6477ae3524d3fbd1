"""The open step: what happens in queues until the next five seconds begin.

It is counted once a tick, never once a job.
"""

from collections import Counter
from collections.abc import Callable
from itertools import repeat

from zq.engine.after_commit import Committed
from zq.model.commands import Fail, Succeed, TickResult
from zq.model.events import EventType
from zq.model.trends import STEP_MS, Trend, room_for

MOST_TIMED = 100_000
"""Of this many jobs in flight it is known when they were delivered. Others are not timed."""

_ENDS = {EventType.FAILED: "died", EventType.EXPIRED: "expired"}


class OpenTrends:
    """What happens in each queue until `when_over` takes it away."""

    def __init__(self) -> None:
        self.listens = True
        self.at = 0
        """When it began, in milliseconds."""
        self.trends: dict[str, Trend] = {}
        self.when_over: Callable[[int], object] = lambda _: None
        """Called with the time of the tick that does not belong to this step."""
        self._delivered: dict[int, tuple[str, int]] = {}
        """Queue and time of the deliveries that have not ended, by the keys of their jobs."""

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
            self._begin(result, now)
        if result.ended and self._delivered:
            self._end(committed, now)

    def _of(self, queue: str) -> Trend:
        trend = self.trends.get(queue)
        if trend is None:
            trend = room_for(self.trends, queue)
        return trend

    def _add(self, kind: str, counts: Counter[str]) -> None:
        for queue, n in counts.items():
            trend = self._of(queue)
            setattr(trend, kind, getattr(trend, kind) + n)

    def _begin(self, result: TickResult, now: int) -> None:
        """Count how long jobs have waited, and note when they were delivered."""
        for jobs in result.claimed:
            marks: dict[str, tuple[str, int]] = {}
            waited = Counter([(job.queue, job.ready_at) for job in jobs])
            for (queue, ready_at), n in waited.items():
                _count(self._of(queue).wait, now - ready_at, n)
                marks[queue] = (queue, now)
            if len(self._delivered) < MOST_TIMED:
                self._delivered.update([(job.key, marks[job.queue]) for job in jobs])

    def _end(self, committed: Committed, now: int) -> None:
        """Count how long jobs ran. One that was given back did not run to its end."""
        ended = [key for _, key in committed.result.ended]
        if committed.result.tally.returned:
            reported = _reported(committed)
            for key in ended:
                if key not in reported:
                    self._delivered.pop(key, None)
        for mark, n in Counter(map(self._delivered.pop, ended, repeat(None))).items():
            if mark is not None:
                queue, since = mark
                _count(self._of(queue).run, now - since, n)


def _count(times: dict[int, int], ms: int, n: int) -> None:
    power = max(ms, 0).bit_length()
    times[power] = times.get(power, 0) + n


def _reported(committed: Committed) -> set[int]:
    """The jobs of which a worker reported the end."""
    keys: set[int] = set()
    for command in committed.tick.commands:
        if isinstance(command, Succeed):
            keys.update(command.keys)
        elif isinstance(command, Fail):
            keys.add(command.key)
    return keys
