"""When the loop runs a tick, and how large the tick may be.

`Timetable`, `Openings` and `Alarm` wake the loop when something falls due; `Pace` sets the size.
"""

import math
from collections.abc import Callable, Mapping
from operator import attrgetter

import msgspec

from zq.engine.after_commit import Committed
from zq.model.clock import Clock, SteadyClock, SteadyMark, Timer
from zq.model.commands import DATES, Deadlines, Due

UNSEEN = (Due.PURGE, Due.NAMES, Due.TRIM, Due.RECORDS, Due.WRITES)
"""Clearances of data that nobody sees any more. They can wait until there is more to clear."""

NONE_DUE = frozenset[Due]()

MOST_ROWS = 20_000
LEAST_ROWS = 250

GOAL_S = 0.020
"""A tick that takes longer makes the next one smaller."""

SHARED_GOAL_S = 0.005
SHARED_S = 1.0
"""The goal in seconds while new jobs and other commands have both come within the last second. A
few more commits cost bulks of new jobs little, and the other commands do not wait long for each of
them. Without new jobs, acknowledgements may be as large as their senders can wait for. A slow disk
raises the goal."""

FORGET = 1.05
"""The shortest flush that is remembered grows by this factor with every tick."""

_ROWS = attrgetter("rows")


class TickTime(msgspec.Struct, frozen=True):
    """The time of a tick on the wall and in steady time, in milliseconds, and what is due then.

    `mark` is that of the steady time, if the tick has to store one.
    """

    now: int
    steady: int
    due: frozenset[Due]
    mark: SteadyMark | None


class Timetable:
    """The deadlines of ticks: dates by the wall clock, durations by steady time.

    Clearances are at least `rest` seconds apart.
    """

    def __init__(
        self, clock: Clock, steady: SteadyClock, deadlines: Deadlines, rest: float
    ) -> None:
        self._clock = clock
        self._steady = steady
        self.deadlines = deadlines
        self.holds_dates = False
        """True if dates that have come wait, since a step of the clock is looked into first."""
        self._longest_rest = rest
        self._cleared = dict.fromkeys(UNSEEN, clock.monotonic() - rest)

    def tick_time(self) -> TickTime:
        """The time of a tick that begins now, and what is due in it."""
        now, steady = self._steady.read()
        mark = self._steady.unstored()
        return TickTime(now, steady, self.due(now, steady) if self.deadlines else NONE_DUE, mark)

    def due(self, now: int, steady: int) -> frozenset[Due]:
        """The deadlines and dates that are due in a tick at a moment (milliseconds)."""
        return frozenset(
            due
            for due, time in self.deadlines.items()
            if time <= (now if due in DATES else steady) and not self._waits(due)
        )

    @property
    def is_due(self) -> bool:
        """True if anything is due."""
        now, steady = self._steady.read()
        return bool(self.deadlines) and bool(self.due(now, steady))

    def learn(self, committed: Committed) -> None:
        """Adopt the deadlines that a tick has found."""
        assert committed.result.deadlines is not None
        self.set(committed.result.deadlines)
        if committed.tick.due:
            self.note(committed.tick.due, committed.tick.steady)

    def set(self, deadlines: Deadlines) -> None:
        """Go by these deadlines from now on."""
        self.deadlines = deadlines

    def note(self, done: frozenset[Due], steady: int) -> None:
        """Begin the rest after a clearance, if everything that was due is gone."""
        for due in UNSEEN:
            if due in done and self.deadlines.get(due, steady + 1) > steady:
                self._cleared[due] = self._clock.monotonic()

    def delay(self) -> float | None:
        """The seconds until the next deadline; None if there is none."""
        now, steady = self._steady.read()
        delays = [
            max((time - (now if due in DATES else steady)) / 1000, self._rest(due))
            for due, time in self.deadlines.items()
            if not (self.holds_dates and due in DATES)
        ]
        return min(delays, default=None)

    def _waits(self, due: Due) -> bool:
        return (self.holds_dates and due in DATES) or bool(self._rest(due))

    def _rest(self, due: Due) -> float:
        if due not in self._cleared:
            return 0.0
        return max(self._cleared[due] + self._longest_rest - self._clock.monotonic(), 0.0)


class Openings:
    """The times at which the rates of queues let the next job through, by the monotonic clock.

    It wakes the streams that wait for these queues.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.times: dict[str, float] = {}

    @property
    def is_due(self) -> bool:
        """True if a queue has opened since the last call of `due`."""
        return bool(self.times) and min(self.times.values()) <= self._clock.monotonic()

    def note(self, times: Mapping[str, float]) -> None:
        """Expect these queues to open. A repeated call delays nothing."""
        for queue, time in times.items():
            self.times[queue] = min(time, self.times.get(queue, time))

    def due(self) -> list[str]:
        """The queues that have opened. Each is named once."""
        if not self.times:
            return []
        now = self._clock.monotonic()
        opened = [queue for queue, time in self.times.items() if time <= now]
        for queue in opened:
            del self.times[queue]
        return opened

    def delay(self) -> float | None:
        """The seconds until the next queue opens; None if none is expected."""
        if not self.times:
            return None
        return min(self.times.values()) - self._clock.monotonic()


class Alarm:
    """Wakes the loop at the next deadline, or sometimes earlier.

    While it `is_set`, nothing falls due before it rings, so nobody need look. Whoever learns of
    something earlier clears that. Most deadlines move on before they come: a timer that is left to
    fire costs less than one that is cancelled and set again with every tick.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._timer: Timer | None = None
        self._at = math.inf
        self.is_set = False

    def set(self, delay: float) -> None:
        """Wake the loop in `delay` seconds at the latest."""
        at = self._clock.monotonic() + delay
        if at < self._at:
            self.stop()
            self._at = at
            self._timer = self._clock.call_later(delay, self._go_off)
        self.is_set = True

    def ring(self) -> None:
        """Wake now: there is something to look at."""
        self.is_set = False
        self._wake()

    def stop(self) -> None:
        """Turn the alarm off."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._at = None, math.inf
        self.is_set = False

    def _go_off(self) -> None:
        self._timer, self._at = None, math.inf
        self.ring()


class Pace:
    """Learns from each tick how large the next one may be."""

    def __init__(self) -> None:
        self.rows = self.beside = MOST_ROWS
        """The rows that the next tick may have, and the rows that take no longer than the disk."""
        self._new_until = self._rest_until = float("-inf")
        self._disk_s = float("inf")

    def learn(self, committed: Committed) -> None:
        """Learn from a tick: its time, its weight, and the kinds of its commands."""
        tick = committed.tick
        batch = tick.commands
        self.note(
            tick.monotonic,
            committed.seconds,
            committed.result.flush_s,
            sum(map(_ROWS, committed.requests)),
            # New jobs and records come last in a batch.
            new=bool(batch) and batch[-1].comes_last,
            rest=bool(batch) and not batch[0].comes_last,
        )

    def note(
        self, now: float, seconds: float, flush_s: float, rows: int, *, new: bool, rest: bool
    ) -> None:
        """Learn from a tick of `rows` that took `seconds`, of which its flush took `flush_s`.

        `new` says whether it had new jobs, `rest` whether it had others. `now` is monotonic.
        """
        # The time of the smallest flush does not depend on the size of a tick.
        disk_s = self._disk_s * FORGET
        if flush_s < disk_s:
            disk_s = flush_s
        self._disk_s = disk_s
        seconds -= disk_s
        if new:
            self._new_until = now + SHARED_S
        if rest:
            self._rest_until = now + SHARED_S
        goal = GOAL_S
        if now < self._new_until and now < self._rest_until:
            goal = min(goal, max(SHARED_GOAL_S, disk_s))
        if seconds > goal:
            self.rows = max(int(self.rows * goal / seconds), LEAST_ROWS)
        elif rows * 2 >= self.rows:  # a tick that is short for lack of work proves nothing
            self.rows = min(self.rows * 2, MOST_ROWS)
        self.beside = int(self.rows * disk_s / goal)
