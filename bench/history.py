"""What the history of jobs costs: the same load on a server with a history and on one without."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
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
    """The figures of one row in one round, without what is measured and with it."""

    row: str
    off: LoadResult
    on: LoadResult


def in_pairs(
    rows: list[str], rounds: int, progress: Progress, measure: Callable[[str, bool], LoadResult]
) -> list[Pair]:
    """Measure each row without something and with it. The order changes with every round."""
    pairs = []
    for turn in range(rounds):
        for row in rows:
            progress.show(f"round {turn + 1}/{rounds} {row}")
            order = (False, True) if turn % 2 else (True, False)
            found = {is_on: measure(row, is_on) for is_on in order}
            pairs.append(Pair(row, found[False], found[True]))
    progress.clear()
    return pairs


def pair_table(pairs: list[Pair], names: tuple[str, str], aims: Mapping[str, float]) -> Table:
    """`ratio` is the rate with what is measured over the rate without; `by CPU` compares CPU a job.

    `names` are those of the two columns of rates, without it and with it.
    """
    lines = []
    for row in dict.fromkeys(pair.row for pair in pairs):
        of_row = [pair for pair in pairs if pair.row == row]
        rates = [(pair.off.measures[0].rate, pair.on.measures[0].rate) for pair in of_row]
        ratios = [on / off for off, on in rates]
        by_cpu = [cpu_per_job(pair.off) / cpu_per_job(pair.on) for pair in of_row]
        middle = [number(statistics.median(each)) for each in zip(*rates, strict=True)]
        measured = [ratio(ratios), span(ratios, 2), ratio(by_cpu), number(aims[row], 2)]
        lines.append([row, *middle, *measured])
    return Table(
        ["row", *(f"{name} /s" for name in names), "ratio", "low-high", "by CPU", "aim"], lines
    )


def history(
    lab: Lab, rows: list[str], rounds: int, seconds: float, queues: int, progress: Progress
) -> list[Pair]:
    """Each row on fresh servers with a history and without."""

    def measure(row: str, is_on: bool) -> LoadResult:
        with lab.server(ON if is_on else OFF) as target:
            return in_own_process(run_load, target, ROWS[row].spec(queues, seconds))

    return in_pairs(rows, rounds, progress, measure)


def history_table(pairs: list[Pair]) -> Table:
    """The rates with a history beside those without."""
    return pair_table(pairs, ("without", "with"), AIMS)
