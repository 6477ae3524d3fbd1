"""Processes that end with the block that started them, whenever an interrupt comes."""

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
    """Call `start`, and `end` with what it started when the block is left; in the main thread."""
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
    """Hold SIGINT back: raised inside Popen it would leave a process that nobody knows."""
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
