"""When the workers of streams were heard last, and what they have failed at.

Settlements note nothing: streams are visited now and then, and one that has settled a job since the
visit before was heard. So this costs nothing with every job.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from zq.engine.delivery.streams import Streams
from zq.engine.delivery.takers import Stream
from zq.model.clock import Clock, Timer

VISIT_S = 5.0
LATE_SHARE = 2 / 3
"""A worker renews its leases three times in each. It is silent when it has left out two of them."""

MOST_FAILURES = 10


class WorkerFailure(NamedTuple):
    """An attempt that a worker has reported as failed, at a time in milliseconds."""

    at: int
    key: int
    queue: str
    type: str
    message: str


class Liveness:
    """When the worker of one stream was heard. Times are in milliseconds."""

    def __init__(self, now: int) -> None:
        self.heard_at = now
        """When it was opened, has settled or extended something, or has reported progress."""
        self.failed = 0
        """How many attempts it has reported as failed."""
        self.failures: deque[WorkerFailure] = deque(maxlen=MOST_FAILURES)
        """The latest of them."""
        self._settled = 0
        self._owes_since = now
        """Since when it holds jobs, so that it should be heard."""

    def visit(self, stream: Stream, now: int) -> None:
        """Look at what its stream has settled."""
        settled = stream.delivered - len(stream.held)
        if settled != self._settled:
            self._settled, self.heard_at = settled, now
        if not stream.held:
            self._owes_since = now

    def is_silent(self, stream: Stream, now: int) -> bool:
        """True if it should have renewed the leases of its jobs, and has not."""
        lease_ms = stream.subscription.lease_ms
        if lease_ms is None or not stream.held:
            return False
        longest = max(LATE_SHARE * lease_ms, 2000 * VISIT_S)
        return now - max(self.heard_at, self._owes_since) > longest


class StreamLiveness:
    """The liveness of all open streams, by their numbers."""

    def __init__(self, clock: Clock, streams: Streams) -> None:
        self._clock = clock
        self._streams = streams
        self._known: dict[int, Liveness] = {}
        self._timer: Timer | None = None

    def opened(self, stream: Stream) -> None:
        """Begin to visit a stream."""
        self._known[stream.number] = Liveness(stream.since)
        if self._timer is None:
            self._timer = self._clock.call_later(VISIT_S, self._turn)

    def closed(self, stream: Stream) -> None:
        """Forget a stream."""
        self._known.pop(stream.number, None)
        if not self._known and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def of(self, stream: Stream) -> Liveness:
        """The liveness of a stream up to now."""
        now = self._clock.now_ms()
        liveness = self._known.get(stream.number) or Liveness(now)
        liveness.visit(stream, now)
        return liveness

    def heard(self, keys: Iterable[int]) -> None:
        """Note that the holders of some jobs have said something of them."""
        now = self._clock.now_ms()
        for number in {stream.number for stream in self._streams.holders(keys)}:
            if (liveness := self._known.get(number)) is not None:
                liveness.heard_at = now

    def failed(self, stream: Stream, failure: WorkerFailure) -> None:
        """Note that the worker of a stream has reported a failure."""
        if (liveness := self._known.get(stream.number)) is not None:
            liveness.heard_at = failure.at
            liveness.failed += 1
            liveness.failures.append(failure)

    def _turn(self) -> None:
        now = self._clock.now_ms()
        for stream in self._streams.all():
            if (liveness := self._known.get(stream.number)) is not None:
                liveness.visit(stream, now)
        self._timer = self._clock.call_later(VISIT_S, self._turn)
