"""A clock for tests of the server and its parts: time passes when a test says so."""

import heapq
import itertools
import secrets
from collections.abc import Callable

from zq.model.clock import Timer


class ManualClock:
    """A clock that stands still until it is told to move.

    `advance` moves both kinds of time and fires the timers that fall due, each at its own time.
    `jump` skips the time in between. `step` moves only the wall clock, as an administrator would.
    """

    def __init__(self, now_ms: int = 1_750_000_000_000) -> None:
        self._wall_ms = now_ms
        self._monotonic_ms = 0.0
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._order = itertools.count()
        self.boot: str | None = secrets.token_hex(4)

    def now_ms(self) -> int:
        return self._wall_ms

    def monotonic(self) -> float:
        return self._monotonic_ms / 1000

    def elapsed_ms(self) -> int:
        return round(self._monotonic_ms)

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
        """Set the wall clock forward or back. Elapsed time and timers do not change."""
        self._wall_ms += ms

    def reboot(self) -> None:
        """Start the machine again: what has elapsed before says nothing from now on."""
        self.boot = secrets.token_hex(4)


class _ManualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()
