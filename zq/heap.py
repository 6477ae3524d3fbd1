"""Free memory goes back to the operating system. Where the C library is not glibc, it may not."""

import contextlib
import ctypes

_M_ARENA_MAX = -8  # malloc.h


def share_one() -> None:
    """Let all threads take memory from one heap; for the beginning of a process.

    glibc gives each thread a heap of its own, and what such a heap has free at its end it keeps.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def trim() -> None:
    """Give back what is free, also where something behind it is in use. It takes milliseconds."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
