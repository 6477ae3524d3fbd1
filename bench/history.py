"""What the history of jobs costs: the same load on a server with a history and on one without."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bench.compare import cpu_per_job
from bench.load import LoadResult, in_own_process, run_load
from bench.report import Progress, Table, number, ratio, span
from bench.rows import ROWS
from bench.servers import Lab

OFF, ON = "zq", "zq-history"
AIMS = {"take-1000": 0.80, "take-100": 0.85, "take-50": 0.85, "life": 0.80, "ack": 0.85}
"""Row → the smallest ratio of the rates that is acceptable."""


@dataclass(frozen=True)
class Pair:
    """The figures of one row in one round, without a history and with one."""

    row: str
    off: LoadResult
    on: LoadResult


def history(
    lab: Lab, rows: list[str], rounds: int, seconds: float, queues: int, progress: Progress
) -> list[Pair]:
    """Each row on a fresh server of each kind. The order changes with every round."""
    pairs = []
    for turn in range(rounds):
        for row in rows:
            progress.show(f"round {turn + 1}/{rounds} {row}")
            results = {}
            for server in (OFF, ON) if turn % 2 else (ON, OFF):
                with lab.server(server) as target:
                    spec = ROWS[row].spec(queues, seconds)
                    results[server] = in_own_process(run_load, target, spec)
            pairs.append(Pair(row, results[OFF], results[ON]))
    progress.clear()
    return pairs


def history_table(pairs: list[Pair]) -> Table:
    """`ratio` is the rate with a history over the rate without; `by CPU` compares CPU a job."""
    lines = []
    for row in dict.fromkeys(pair.row for pair in pairs):
        of_row = [pair for pair in pairs if pair.row == row]
        rates = [(_rate(pair.off), _rate(pair.on)) for pair in of_row]
        ratios = [on / off for off, on in rates]
        by_cpu = [cpu_per_job(pair.off) / cpu_per_job(pair.on) for pair in of_row]
        middle = [number(statistics.median(each)) for each in zip(*rates, strict=True)]
        measured = [ratio(ratios), span(ratios, 2), ratio(by_cpu), number(AIMS[row], 2)]
        lines.append([row, *middle, *measured])
    header = ["row", "without /s", "with /s", "ratio", "low-high", "by CPU", "aim"]
    return Table(header, lines)


def _rate(result: LoadResult) -> float:
    return result.measures[0].rate
