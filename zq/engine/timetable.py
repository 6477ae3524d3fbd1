"""When the tick loop has to wake up by itself for what falls due at a wall time."""

from zq.model.clock import Clock
from zq.model.commands import Deadlines, Due

RESTING = frozenset({Due.PURGE, Due.TRIM})
"""What need not be done to the moment: what is due meanwhile is done in one go."""


class Timetable:
    """The next deadlines. `rest` is the shortest time between two looks at what is `RESTING`, in
    seconds."""

    def __init__(self, clock: Clock, deadlines: Deadlines, rest: float) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._rest_s = rest
        self._done = dict.fromkeys(RESTING, clock.monotonic() - rest)

    def due(self, now: int) -> frozenset[Due]:
        """What a tick at `now` (milliseconds) has to attend to."""
        return frozenset(
            due for due, time in self._deadlines.items() if time <= now and not self._rest(due)
        )

    def learn(self, deadlines: Deadlines) -> None:
        """Take over the deadlines that a tick has found."""
        self._deadlines = deadlines

    def note(self, done: frozenset[Due], now: int) -> None:
        """Rest before the next look, but not before all that was due is done."""
        for due in done & RESTING:
            if self._deadlines.get(due, now + 1) > now:
                self._done[due] = self._clock.monotonic()

    def delay(self) -> float | None:
        """Seconds to the next deadline, None where there is none."""
        if not self._deadlines:
            return None
        now = self._clock.now_ms()
        return min(
            max((time - now) / 1000, self._rest(due)) for due, time in self._deadlines.items()
        )

    def _rest(self, due: Due) -> float:
        if due not in RESTING:
            return 0.0
        return max(self._done[due] + self._rest_s - self._clock.monotonic(), 0.0)
