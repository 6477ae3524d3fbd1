"""Time as a parameter: wall time for dates, steady time for durations, monotonic time for waits."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

SLIGHT_MS = 1_000
"""Steady time follows the wall clock as long as that differs by less from the time that has elapsed
since the last look. Slow corrections go that way."""

MARK_EVERY_MS = 60_000
"""The time between two marks of the steady time by a store that is in use, in milliseconds. After a
reboot with a clock that is behind, steady time goes on from the last mark."""

LAST_DATE_MS = 253_402_300_799_000
"""The last second of the year 9999. Times of jobs may be later, and then have no date."""

LOOKS = 5
"""The most readings of the clocks before a difference counts."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""The file in which Linux names the start of the machine."""

_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Timer(Protocol):
    """The result of `Clock.call_later`."""

    def cancel(self) -> None:
        """Ensure that the callback does not run. This is harmless if it has run."""


class Clock(Protocol):
    """Every use that zq makes of time."""

    def now_ms(self) -> int:
        """Wall time: milliseconds since the Unix epoch. It may step in either direction."""

    def monotonic(self) -> float:
        """Seconds that never step back."""

    def elapsed_ms(self) -> int:
        """Milliseconds that have passed since the machine was started, suspended or not."""

    @property
    def boot(self) -> str | None:
        """Names the start of the machine from which `elapsed_ms` counts, if that has a name."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Run `callback` in the event loop once `seconds` of monotonic time have passed."""


def now_ms() -> int:
    """Wall time of the machine: milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


class SystemClock:
    """The machine's clock and the running event loop's timers."""

    now_ms = staticmethod(now_ms)

    monotonic = staticmethod(time.monotonic)

    def elapsed_ms(self) -> int:
        return time.clock_gettime_ns(_SINCE_BOOT) // 1_000_000

    @cached_property
    def boot(self) -> str | None:
        with suppress(OSError):
            return BOOT_ID.read_text(encoding="ascii").strip()
        return None

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class SteadyMark(NamedTuple):
    """The steady time as a store last noted it. `elapsed_ms` counts within the `boot`."""

    ahead: int
    steady: int
    boot: str | None
    elapsed_ms: int


class ClockStep(NamedTuple):
    """The wall clock was set `by` milliseconds, from `before` to `at`."""

    by: int
    before: int
    at: int


class SteadyClock:
    """Steady time: milliseconds of elapsed time, near the Unix epoch, that nobody can set.

    Durations run on it. It is the wall time plus `ahead`. If the wall clock is set, `ahead` changes
    by as much the other way, so that steady time goes on as before. It never runs backwards. A
    store keeps a mark of it, from which the next start goes on: within one boot of the machine by
    the time that has elapsed. After a reboot only the wall clock tells how long it took; if that
    shows less than the mark, or if the time in which the machine was off does not count, steady
    time goes on from the mark.
    """

    def __init__(
        self, clock: Clock, mark: SteadyMark | None = None, *, off_counts: bool = True
    ) -> None:
        self.on_step: Callable[[ClockStep], object] | None = None
        """Called whenever the clock was set, even by little."""
        self.last_step: ClockStep | None = None
        self.ahead = 0
        """How far steady time is ahead of the wall, in milliseconds; often 0."""
        self._clock = clock
        self._elapsed = clock.elapsed_ms()
        wall = clock.now_ms()
        self._steady = wall
        self._stored: SteadyMark | None = mark
        if mark is None:
            return
        self.ahead, self._steady = mark.ahead, mark.steady
        if mark.boot is not None and mark.boot == clock.boot and mark.elapsed_ms <= self._elapsed:
            self._go_on(wall, mark.steady + self._elapsed - mark.elapsed_ms)
        elif wall + mark.ahead < mark.steady or not off_counts:
            self._go_on(wall, mark.steady)
        else:
            self._steady = wall + mark.ahead

    def read(self) -> tuple[int, int]:
        """The wall time and the steady time of this moment."""
        clock = self._clock
        elapsed = clock.elapsed_ms()
        wall = clock.now_ms()
        steady = wall + self.ahead
        expected = self._steady + elapsed - self._elapsed
        if -SLIGHT_MS < steady - expected < SLIGHT_MS:
            # Every request comes here: nothing is called that need not be.
            self._elapsed = elapsed
            if steady > self._steady:
                self._steady = steady
            return wall, self._steady
        # The processor may have been away between the two looks.
        self._elapsed, wall, expected = self._read_again()
        self._go_on(wall, expected)
        return wall, self._steady

    def since(self, date: int) -> int:
        """How many milliseconds ago a date was, if the clock was set once since then at most."""
        wall, _ = self.read()
        step, by = self.last_step, 0
        if step is not None and (date < step.at if step.by > 0 else date > wall):
            by = step.by
        return max(wall - date - by, 0)

    def mark(self) -> SteadyMark:
        """The steady time of the last look, to be stored."""
        return SteadyMark(self.ahead, self._steady, self._clock.boot, self._elapsed)

    def unstored(self) -> SteadyMark | None:
        """A mark that the next transaction has to store, if the last one is no longer enough."""
        stored = self._stored
        if stored and stored.ahead == self.ahead and self._steady - stored.steady < MARK_EVERY_MS:
            return None
        return self.mark()

    def stored(self, mark: SteadyMark) -> None:
        """Note that a mark is stored."""
        self._stored = mark

    def _read_again(self) -> tuple[int, int, int]:
        for _ in range(LOOKS):
            elapsed = self._clock.elapsed_ms()
            wall = self._clock.now_ms()
            if self._clock.elapsed_ms() - elapsed < SLIGHT_MS // 10:
                break
        return elapsed, wall, self._steady + elapsed - self._elapsed

    def _go_on(self, wall: int, expected: int) -> None:
        """Go on to the wall time, or to what is expected if the wall clock was set."""
        by = wall + self.ahead - expected
        if abs(by) < SLIGHT_MS:
            self._steady = max(self._steady, wall + self.ahead)
            return
        self.ahead -= by
        self._steady = expected
        self.last_step = ClockStep(by, wall - by, wall)
        if self.on_step is not None:
            self.on_step(self.last_step)
