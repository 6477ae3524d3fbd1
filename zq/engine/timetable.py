"""When the tick loop has to wake up by itself for what falls due at a wall time."""

from zq.model.clock import Clock
from zq.model.commands import Deadlines, Due


class Timetable:
    """The next deadlines. `purge_rest` is the shortest time between two purges, in seconds."""

    def __init__(self, clock: Clock, deadlines: Deadlines, purge_rest: float) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._purge_rest = purge_rest
        self._purged = clock.monotonic() - purge_rest

    def due(self, now: int) -> frozenset[Due]:
        """What a tick at `now` (milliseconds) has to attend to."""
        return frozenset(
            due for due, time in self._deadlines.items() if time <= now and not self._rest(due)
        )

    def learn(self, deadlines: Deadlines) -> None:
        """Take over the deadlines that a tick has found."""
        self._deadlines = deadlines

    def note(self, done: frozenset[Due], now: int) -> None:
        """Rest between purges, but not before all that was due is gone."""
        if Due.PURGE in done and self._deadlines.get(Due.PURGE, now + 1) > now:
            self._purged = self._clock.monotonic()

    def delay(self) -> float | None:
        """Seconds to the next deadline, None where there is none."""
        if not self._deadlines:
            return None
        now = self._clock.now_ms()
        return min(
            max((time - now) / 1000, self._rest(due)) for due, time in self._deadlines.items()
        )

    def _rest(self, due: Due) -> float:
        if due is not Due.PURGE:
            return 0.0
        return max(self._purged + self._purge_rest - self._clock.monotonic(), 0.0)
