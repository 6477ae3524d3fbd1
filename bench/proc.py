"""Memory and processor time of a server from /proc, including its children.

A child that ends during a look counts as nothing: its parent then has its processor time.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """User and system time so far."""
    return sum(_cpu_ticks(each) for each in tree(pid)) / TICKS_A_SECOND


def main_thread_times(pid: int) -> tuple[float, float]:
    """For how long the main thread has run, and has waited for a processor, in seconds."""
    fields = _read(pid, "schedstat").split()
    return (int(fields[0]) / 1e9, int(fields[1]) / 1e9) if fields else (0.0, 0.0)


def rss_mb(pid: int) -> float:
    """Resident memory now, in MiB."""
    return sum(own_rss_mb(each) for each in tree(pid))


def own_rss_mb(pid: int) -> float:
    """Resident memory of this process alone, in MiB."""
    return _resident_pages(pid) * PAGE / 2**20


def peak_rss_mb(pid: int) -> float:
    """The peak of resident memory in MiB: the sum of each process's own peak."""
    return sum(_peak_kib(each) for each in tree(pid)) / 1024


def tree(pid: int) -> list[int]:
    """`pid` and all its descendants."""
    return [pid, *(each for child in _children(pid) for each in tree(child))]


def _children(pid: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    return []


def _read(pid: int, name: str) -> str:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/{name}").read_text()
    return ""


def _cpu_ticks(pid: int) -> int:
    # The command name is in brackets and may hold spaces, so count the fields after it: user and
    # system time, of the process and of its children that have ended.
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])


def _resident_pages(pid: int) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) if fields else 0


def _peak_kib(pid: int) -> int:
    lines = _read(pid, "status").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
