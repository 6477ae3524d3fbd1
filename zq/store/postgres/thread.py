"""The thread of ticks, and those who wait behind it while PostgreSQL does not answer.

A connection may be silent for long: the host behind it is lost, or a process there was stopped. So
the event loop looks at the clock, and the thread is not asked.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from zq.store.errors import StoreAway

T = TypeVar("T")

SILENT_S = 2.0
"""For so long the thread works or waits before anybody is told."""

LOOK_S = 1.0
"""The time between two looks."""


class TickThread:
    """Runs functions one after the other. It alone uses the connection of ticks."""

    def __init__(self) -> None:
        self.when_away: Callable[[StoreAway], object] = bool
        """Called at each look once a function takes long, with the cause."""
        self.cause: StoreAway | None = None
        """Why the function under way waits, as far as it knows that."""
        self._executor = ThreadPoolExecutor(1, "zq-tick")
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        """The monotonic time at which the function under way began."""
        self._timer = self._loop.call_later(LOOK_S, self._look)

    async def run(self, function: Callable[..., T], *args: object) -> T:
        """Run a function in the thread."""
        return await self._loop.run_in_executor(self._executor, self._do, function, args)

    def close(self, *, wait: bool = True) -> None:
        """End the thread once it has run what it was asked to."""
        self._timer.cancel()
        self._executor.shutdown(wait=wait)

    def _do(self, function: Callable[..., T], args: tuple[object, ...]) -> T:
        self._since = time.monotonic()
        try:
            return function(*args)
        finally:
            self._since = self.cause = None

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_S, self._look)
        since = self._since
        if since is None:
            return
        seconds = time.monotonic() - since
        if seconds >= SILENT_S:
            silent = f"PostgreSQL has not answered a transaction for {seconds:.0f} seconds"
            self.when_away(self.cause or StoreAway(silent))
