"""The state of the process: the event loop's delay, and free memory that can be returned."""

import asyncio
import contextlib
import ctypes
from pathlib import Path

from zq.engine.subscribers.figures import SECONDS, Histogram

LOOK_EVERY_S = 0.5

_M_ARENA_MAX = -8  # malloc.h


class LagMeter:
    """Measures the delay of the event loop, which every request waits for besides its own work.

    It sets a timer again and again, and notes how late it fires, in seconds.
    """

    def __init__(self) -> None:
        self.seconds = Histogram(SECONDS)
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + LOOK_EVERY_S
        self._timer = self._loop.call_at(self._due, self._measure)

    def stop(self) -> None:
        """End the measurement."""
        self._timer.cancel()

    def _measure(self) -> None:
        now = self._loop.time()
        self.seconds.observe(max(now - self._due, 0.0))
        self._due = now + LOOK_EVERY_S
        self._timer = self._loop.call_at(self._due, self._measure)


def storage_written() -> int | None:
    """The bytes that this process had the kernel write to a disk; None if the system tells none."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    return next((int(line[13:]) for line in lines if line.startswith("write_bytes: ")), None)


def share_one_heap() -> None:
    """Make all threads take memory from one heap. Call it when the process begins.

    glibc gives each thread a heap of its own, and keeps the free memory at the end of such a heap.
    With another C library, nothing happens.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def trim_heap() -> None:
    """Return free memory to the system, even if memory behind it is in use.

    It takes milliseconds. With another C library than glibc, nothing happens.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
