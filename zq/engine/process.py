"""What the process tells of itself, and gives back: the event loop's delay, and free memory."""

import asyncio
import contextlib
import ctypes

from zq.engine.news.figures import SECONDS, Histogram

LOOK_EVERY_S = 0.5

_M_ARENA_MAX = -8  # malloc.h


class LagMeter:
    """How late the event loop is: what every request waits for beside its own work.

    It sets the loop's own timer again and again, and notes how late it fires. In seconds.
    """

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


def share_one_heap() -> None:
    """Let all threads take memory from one heap; for the beginning of a process.

    glibc gives each thread a heap of its own, and what such a heap has free at its end it keeps.
    Where the C library is another one, nothing happens.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def trim_heap() -> None:
    """Give free memory back to the system, also where something behind it is in use.

    It takes milliseconds. Where the C library is not glibc, nothing happens.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
