"""How late the event loop is: what every request waits for beside its own work."""

import asyncio

from zq.engine.stats import SECONDS, Histogram

LOOK_EVERY_S = 0.5


class LagMeter:
    """Sets the loop's own timer again and again, and notes how late it fires. In seconds."""

    def __init__(self) -> None:
        self.seconds = Histogram(SECONDS)
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + LOOK_EVERY_S
        self._timer = self._loop.call_at(self._due, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        self.seconds.observe(max(now - self._due, 0.0))
        self._due = now + LOOK_EVERY_S
        self._timer = self._loop.call_at(self._due, self._look)
