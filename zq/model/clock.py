"""Time as a parameter: wall time for schedules, monotonic time for waits."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol


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

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Run `callback` in the event loop once `seconds` of monotonic time have passed."""


class SystemClock:
    """The machine's clock and the running event loop's timers."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class SteadyClock:
    """Wall time as if nobody had stepped the clock since the last `rebase`.

    Leases use it. When an administrator or NTP sets the clock, no lease ends early or lasts longer.
    Their deadlines still have a meaning after a restart of the server.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.rebase()

    def rebase(self) -> int:
        """Adopt the wall time and return it. Call it while no deadline runs."""
        # The order matters: time between the two reads makes leases longer, never shorter, also
        # after a restart that took no time.
        self._began_ms = self._clock.now_ms()
        self._began = self._clock.monotonic()
        return self._began_ms

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, approximately."""
        return self._began_ms + round((self._clock.monotonic() - self._began) * 1000)


class ManualClock:
    """A clock for tests that stands still until it is told to move.

    `advance` moves both kinds of time and fires the timers that fall due, each at its own time.
    `jump` skips the time in between. `step` moves only the wall clock, as an administrator would.
    """

    def __init__(self, now_ms: int = 1_750_000_000_000) -> None:
        self._wall_ms = now_ms
        self._monotonic_ms = 0.0
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._order = itertools.count()

    def now_ms(self) -> int:
        return self._wall_ms

    def monotonic(self) -> float:
        return self._monotonic_ms / 1000

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = _ManualTimer(callback)
        due = self._monotonic_ms + seconds * 1000
        heapq.heappush(self._timers, (due, next(self._order), timer))
        return timer

    def advance(self, ms: int) -> None:
        """Let `ms` milliseconds pass. Call it in the event loop's thread."""
        target = self._monotonic_ms + ms
        wall_target = self._wall_ms + ms
        while self._timers and self._timers[0][0] <= target:
            due, _, timer = heapq.heappop(self._timers)
            # A timer that is late fires now, so time in a callback never runs backwards.
            self._monotonic_ms = max(self._monotonic_ms, due)
            self._wall_ms = wall_target - round(target - self._monotonic_ms)
            timer.fire()
        self._monotonic_ms = target
        self._wall_ms = wall_target

    def jump(self, ms: int) -> None:
        """Let `ms` milliseconds pass at once, as a suspended machine sees it: timers are late."""
        self._monotonic_ms += ms
        self._wall_ms += ms
        self.advance(0)

    def step(self, ms: int) -> None:
        """Set the wall clock forward or back. Monotonic time and timers do not change."""
        self._wall_ms += ms


class _ManualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()
