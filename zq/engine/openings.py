"""When queues open again whose rate has shut them: what wakes the streams that wait for them."""

from collections.abc import Mapping

from zq.engine.committed import Committed
from zq.model.clock import Clock


class Openings:
    """Times of the monotonic clock, by queue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, float] = {}

    @property
    def is_due(self) -> bool:
        """Whether a queue is open by now of which nobody has heard yet."""
        return bool(self._times) and min(self._times.values()) <= self._clock.monotonic()

    def learn(self, committed: Committed) -> None:
        """Take over what a tick has found."""
        self.note(committed.result.openings)

    def note(self, times: Mapping[str, float]) -> None:
        """Expect these queues to open. To ask again puts nothing off."""
        for queue, time in times.items():
            self._times[queue] = min(time, self._times.get(queue, time))

    def due(self) -> list[str]:
        """The queues that are open by now; each is named once."""
        if not self._times:
            return []
        now = self._clock.monotonic()
        opened = [queue for queue, time in self._times.items() if time <= now]
        for queue in opened:
            del self._times[queue]
        return opened

    def delay(self) -> float | None:
        """Seconds until the next queue opens; None where none is awaited."""
        if not self._times:
            return None
        return min(self._times.values()) - self._clock.monotonic()
