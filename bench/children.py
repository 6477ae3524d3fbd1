"""Starts processes that end with a block, no matter when an interrupt comes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from subprocess import Popen
from types import FrameType
from typing import TypeVar

Output = TypeVar("Output", bytes, str)


@contextlib.contextmanager
def running(
    start: Callable[[], Popen[Output]], end: Callable[[Popen[Output]], None]
) -> Iterator[Popen[Output]]:
    """Call `start`, and call `end` when the block is left. This works in the main thread only."""
    process = None
    try:
        with interrupts_wait():
            process = start()
        yield process
    finally:
        if process is not None:
            end(process)


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Hold SIGINT back: raised inside Popen it would leave a process that nothing ends."""
    held = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)
