"""When the tick loop has to wake up by itself for what falls due at a wall time."""

from zq.engine.committed import Committed
from zq.model.clock import Clock, SteadyClock
from zq.model.commands import Deadlines, Due

UNSEEN = (Due.PURGE, Due.NAMES, Due.TRIM)
"""What clears away that nobody sees any more, and so can wait a little for more of it."""


class Timetable:
    """The next deadlines. `rest` is the shortest time between two clearances, in seconds."""

    def __init__(self, clock: Clock, deadlines: Deadlines, rest: float) -> None:
        self._clock = clock
        self._steady = SteadyClock(clock)
        self._deadlines = deadlines
        self._longest_rest = rest
        self._cleared = dict.fromkeys(UNSEEN, clock.monotonic() - rest)

    @property
    def steady(self) -> int:
        """The time by which leases go, in milliseconds."""
        if Due.LEASE not in self._deadlines:
            self._steady.rebase()
        return self._steady.now_ms()

    def due(self, now: int) -> frozenset[Due]:
        """What a tick at `now` (milliseconds) has to attend to."""
        return frozenset(
            due
            for due, time in self._deadlines.items()
            if time <= self._time(due, now) and not self._rest(due)
        )

    @property
    def is_due(self) -> bool:
        """Whether a tick would find something to attend to."""
        return bool(self._deadlines) and bool(self.due(self._clock.now_ms()))

    def learn(self, committed: Committed) -> None:
        """Take over the deadlines that a tick has found."""
        if committed.result.deadlines is not None:
            self.set(committed.result.deadlines)
        if committed.tick.due:
            self.note(committed.tick.due, committed.tick.now)

    def set(self, deadlines: Deadlines) -> None:
        """Go by these deadlines from now on."""
        self._deadlines = deadlines

    def note(self, done: frozenset[Due], now: int) -> None:
        """Rest between clearances, but not before all that was due is gone."""
        for due in UNSEEN:
            if due in done and self._deadlines.get(due, now + 1) > now:
                self._cleared[due] = self._clock.monotonic()

    def delay(self) -> float | None:
        """Seconds to the next deadline, None where there is none."""
        if not self._deadlines:
            return None
        now = self._clock.now_ms()
        return min(
            max((time - self._time(due, now)) / 1000, self._rest(due))
            for due, time in self._deadlines.items()
        )

    def _time(self, due: Due, now: int) -> int:
        return self._steady.now_ms() if due is Due.LEASE else now

    def _rest(self, due: Due) -> float:
        if due not in self._cleared:
            return 0.0
        return max(self._cleared[due] + self._longest_rest - self._clock.monotonic(), 0.0)
