"""A clock that runs by itself and can be moved forward."""

import asyncio
import time
from collections.abc import Callable

from zq.model.clock import Timer


class TravelClock:
    """The machine's clock, moved forward by the sum of all calls of `advance`.

    `advance` fires at once the timers that fall due, in their order. The others fire that much
    sooner.
    """

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._timers: set[_Timer] = set()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_ms / 1000

    def elapsed_ms(self) -> int:
        return round(self.monotonic() * 1000)

    @property
    def boot(self) -> None:
        """The boot under which no steady time goes on: this clock's time is gone with it."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return _Timer(self._timers, self.monotonic() + seconds, seconds, callback)

    def advance(self, ms: int) -> None:
        """Move the clock forward by `ms` milliseconds. Call it in the event loop's thread."""
        self._ahead_ms += ms
        now = self.monotonic()
        for timer in sorted(self._timers, key=lambda timer: timer.due):
            if timer.due <= now:
                timer.fire()
            else:
                timer.start(timer.due - now)


class _Timer:
    """One timer that waits."""

    def __init__(
        self, waiting: "set[_Timer]", due: float, seconds: float, callback: Callable[[], object]
    ) -> None:
        self.due = due
        self._waiting = waiting
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        waiting.add(self)
        self.start(seconds)

    def start(self, seconds: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_later(seconds, self.fire)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._waiting.discard(self)

    def fire(self) -> None:
        if self in self._waiting:
            self.cancel()
            self._callback()
