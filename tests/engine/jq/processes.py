"""The processes that filters start: which there are, what they do, and how long a test waits."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from zq.engine.jq import child as program
from zq.engine.jq.filter import JqFilter

ENDLESS = "def f: f; f"
PATIENCE_S = 60
"""How long a test waits for a condition before it fails. No test depends on its value."""

strangers: set[int] = set()
"""Processes that other tests have started."""


def children(parent: int) -> list[int]:
    """Ids of the processes that `parent` started and did not reap, zombies included."""
    running = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    found = [pid for pid in running if stat(pid)[1:2] == [str(parent)]]
    return [pid for pid in found if pid not in strangers]


def stat(pid: int) -> list[str]:
    """The fields of proc_pid_stat(5) from the state on; nothing once the process is reaped."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def cpu_seconds(pid: int) -> float:
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0


def busy(parent: int) -> list[int]:
    """The filters below `parent` that have worked far longer than their start takes.

    A process of tests has other children too: browsers, and what servers are forked from.
    """
    return [child for child in children(parent) if _is_filter(child) and cpu_seconds(child) >= 0.3]


def _is_filter(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return os.fsencode(program.__file__) in words


def is_busy(parent: int) -> bool:
    """Whether such a child is there."""
    return bool(busy(parent))


def only_child() -> int:
    (child,) = children(os.getpid())
    return child


async def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def is_usable(jq_filter: JqFilter) -> bool:
    return await jq_filter.matches(". > 1", ["1", "2", "3"]) == [False, True, True]
