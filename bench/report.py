"""Tables for people and scripts, the facts beside a figure, and progress."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Table:
    header: list[str]
    lines: list[list[str]]

    def text(self) -> str:
        return "\n".join("  ".join(cells).rstrip() for cells in self._padded())

    def markdown(self) -> str:
        padded = self._padded()
        rule = ["-" * len(cell) for cell in padded[0]]
        return "\n".join(
            "| " + " | ".join(cells) + " |" for cells in (padded[0], rule, *padded[1:])
        )

    def _padded(self) -> list[list[str]]:
        rows = [self.header, *self.lines]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            [cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows
        ]


def number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}"


def span(values: Sequence[float], digits: int) -> str:
    return f"{number(min(values), digits)}-{number(max(values), digits)}"


def ratio(values: Sequence[float]) -> str:
    """The median of ratios within a round: a slow round slows both servers equally."""
    return number(statistics.median(values), 2)


def facts(command: Sequence[str], sync_ms: float) -> dict[str, str]:
    """The facts that belong beside a figure: command, machine, date and commit."""
    return {
        "command": " ".join(["python -m bench", *command]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": f"{os.cpu_count()} cores, {processor()}, Linux {platform.release()}",
        "software": f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"aiohttp {version('aiohttp')}",
        "load average before": f"{os.getloadavg()[0]:.2f}",
        "fdatasync p50": f"{sync_ms:.2f} ms",
    }


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit() -> str:
    """The commit that was measured, with a mark if the tree differs from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "none"


class Progress:
    """One line on a terminal that says what runs. Elsewhere only notes are printed."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self._shown:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        self.show("")

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self.clear()
        print(text, file=sys.stderr, flush=True)
