"""Requests of one job each by number of callers: under wrk, and under the Python load."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import wrk
from bench.compare import turned
from bench.load import LoadSpec, Target, in_own_process, run_load
from bench.report import Progress, Table, number, ratio
from bench.rows import ROWS
from bench.servers import Lab
from bench.wrk import WrkResult

Drive = Callable[[Target, int, int, int, Path], WrkResult]


@dataclass(frozen=True)
class LoneRow:
    """One number of callers: the function for wrk, and the same row for the Python load."""

    title: str
    callers: int
    drive: Drive
    python: str


LONE = (
    LoneRow("enqueue, 1 caller", 1, wrk.enqueue, "single-1"),
    LoneRow("enqueue, 8", 8, wrk.enqueue, "single-8"),
    LoneRow("enqueue, 64", 64, wrk.enqueue, "single"),
    LoneRow("enqueue, 256", 256, wrk.enqueue, "single-256"),
    LoneRow("acknowledge, 64", 64, wrk.acknowledge, "ack"),
)


@dataclass(frozen=True)
class LoneSample:
    """One row in one round on one server, under one load."""

    row: str
    load: str
    server: str
    result: WrkResult


def lone(
    lab: Lab, servers: list[str], rounds: int, seconds: int, queues: int, progress: Progress
) -> list[LoneSample]:
    """Every row under both loads on every server, each freshly started. Rounds alternate."""
    wrk.find_wrk()
    samples = []
    for turn in range(rounds):
        for row in LONE:
            for server in turned(servers, turn):
                progress.show(f"round {turn + 1}/{rounds} {row.title}: {server}")
                with lab.server(server) as target:
                    by_wrk = in_own_process(
                        row.drive, target, row.callers, seconds, queues, lab.directory
                    )
                samples.append(LoneSample(row.title, "wrk", server, by_wrk))
                with lab.server(server) as target:
                    spec = ROWS[row.python].spec(queues, seconds)
                    by_python = in_own_process(run_python, target, spec)
                samples.append(LoneSample(row.title, "Python", server, by_python))
    progress.clear()
    return samples


def run_python(target: Target, spec: LoadSpec) -> WrkResult:
    """Run the Python load. Return its figures in the form of those of wrk."""
    result = run_load(target, spec)
    (measure,) = result.measures
    return WrkResult(measure.rate, result.server_cpu, measure.p50, measure.p99)


def lone_table(samples: list[LoneSample]) -> Table:
    """A line for each row, load and server, with the ratio of the first server to it."""
    servers = list(dict.fromkeys(each.server for each in samples))
    header = ["requests", "load", "server", "/s", "at cores", "/s a core", "p50 ms", "p99 ms"]
    lines = [
        line
        for row in LONE
        for load in ("wrk", "Python")
        for line in row_lines(
            servers, [each for each in samples if each.row == row.title and each.load == load]
        )
    ]
    return Table([*header, f"{servers[0]} / it", "a core"], lines)


def row_lines(servers: list[str], samples: list[LoneSample]) -> Iterator[list[str]]:
    of = {server: [s.result for s in samples if s.server == server] for server in servers}
    subject = of[servers[0]]
    for server, results in of.items():
        cells = [
            samples[0].row,
            samples[0].load,
            server,
            number(statistics.median(each.rate for each in results)),
            number(statistics.median(each.cores for each in results), 2),
            number(statistics.median(each.rate / each.cores for each in results)),
            number(statistics.median(each.p50 for each in results), 2),
            number(statistics.median(each.p99 for each in results), 2),
        ]
        if results is subject:
            yield [*cells, "", ""]
            continue
        pairs = list(zip(subject, results, strict=True))
        rates = [ours.rate / its.rate for ours, its in pairs]
        a_core = [ours.rate / ours.cores / (its.rate / its.cores) for ours, its in pairs]
        yield [*cells, ratio(rates), ratio(a_core)]
