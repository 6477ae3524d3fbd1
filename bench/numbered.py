"""Bulks of producers that number their jobs, beside plain bulks: what the numbers cost."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bench.load import in_own_process, run_load
from bench.report import Progress, Table, number, ratio, span
from bench.rows import ROWS
from bench.servers import Lab

PLAIN, NUMBERED = "bulk", "producer"
AIM = 0.97


@dataclass(frozen=True)
class BulkRun:
    """Jobs a second, and microseconds of the server's processor time a job."""

    row: str
    rate: float
    cpu_us: float


def numbered(
    lab: Lab, rounds: int, seconds: float, queues: int, progress: Progress
) -> list[BulkRun]:
    """Both rows on fresh servers, by rounds. Each round begins with the other row."""
    found = []
    for turn in range(rounds):
        for row in (PLAIN, NUMBERED) if turn % 2 else (NUMBERED, PLAIN):
            progress.show(f"round {turn + 1}/{rounds}: {row}")
            with lab.server("zq") as target:
                result = in_own_process(run_load, target, ROWS[row].spec(queues, seconds))
            rate = result.measures[0].rate
            found.append(BulkRun(row, rate, result.server_cpu / rate * 1e6))
    progress.clear()
    return found


def numbered_table(found: list[BulkRun]) -> Table:
    """The ratios compare the rates, and the processor time of a job, with plain bulks."""
    plain = [each for each in found if each.row == PLAIN]
    lines = []
    for row in (PLAIN, NUMBERED):
        mine = [each for each in found if each.row == row]
        rates = [each.rate for each in mine]
        cells = [row, number(statistics.median(rates)), span(rates, 0)]
        cells.append(number(statistics.median(each.cpu_us for each in mine), 2))
        pairs = list(zip(mine, plain, strict=True))
        by_rate = [each.rate / other.rate for each, other in pairs]
        by_cpu = [other.cpu_us / each.cpu_us for each, other in pairs]
        is_plain = row == PLAIN
        cells += (
            ["", "", "", ""]
            if is_plain
            else [ratio(by_rate), span(by_rate, 2), ratio(by_cpu), f"{AIM}"]
        )
        lines.append(cells)
    header = ["row", "jobs/s", "low-high", "CPU µs/job", "of bulk", "low-high", "by CPU", "aim"]
    return Table(header, lines)
