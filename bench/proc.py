"""What /proc knows about a server: memory and processor time, children included."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """User and system time so far."""
    return sum(_cpu_ticks(each) for each in tree(pid)) / TICKS_A_SECOND


def rss_mb(pid: int) -> float:
    """Resident memory now, in MiB."""
    pages = sum(int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in tree(pid))
    return pages * PAGE / 2**20


def peak_rss_mb(pid: int) -> float:
    """The most that was ever resident, in MiB; the sum of each process's own peak."""
    return sum(_peak_kib(each) for each in tree(pid)) / 1024


def tree(pid: int) -> list[int]:
    """`pid` and all its descendants."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return [pid, *(each for child in children for each in tree(child))]


def _cpu_ticks(pid: int) -> int:
    # The command name is in brackets and may hold spaces, so count the fields after it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
