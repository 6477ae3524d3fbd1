"""The comparison: the same rows on several servers, interleaved by rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from bench.actors import Measure
from bench.load import LoadResult, in_own_process, run_load
from bench.report import Progress, Table, number, ratio, span
from bench.rows import ROWS
from bench.servers import Lab

T = TypeVar("T")

ENDLESS = "null"


@dataclass(frozen=True)
class Sample:
    """One row in one round on one server, freshly started on an empty directory."""

    row: str
    round: int
    server: str
    result: LoadResult

    def measure(self, name: str) -> Measure:
        return next(each for each in self.result.measures if each.name == name)


def turned(servers: list[T], by: int) -> list[T]:
    """The same servers in the same order, beginning with another one."""
    start = by % len(servers)
    return servers[start:] + servers[:start]


def compare(
    lab: Lab,
    servers: list[str],
    rows: list[str],
    rounds: int,
    seconds: float,
    queues: int,
    progress: Progress,
) -> list[Sample]:
    """Each row on all servers, round after round. Each round begins with another server."""
    samples = []
    labelled = list(zip(labels(servers), servers, strict=True))
    for turn in range(rounds):
        for row in rows:
            for label, server in turned(labelled, turn):
                progress.show(f"round {turn + 1}/{rounds} {row} {label}")
                spec = ROWS[row].spec(queues, seconds)
                if server == ENDLESS:
                    spec = replace(spec, backlog=0)
                with lab.server(server) as target:
                    result = in_own_process(run_load, target, spec)
                samples.append(Sample(row, turn + 1, label, result))
    progress.clear()
    return samples


def labels(servers: list[str]) -> list[str]:
    """A name for each. A server against itself shows how much of a ratio is noise."""
    return [
        f"{server} again" if server in servers[:place] else server
        for place, server in enumerate(servers)
    ]


HEADER = ["row", "server", "jobs/s", "low-high", "p50 ms", "p99 ms", "CPU µs/job"]
HEADER += ["server CPU", "load CPU", "peak RSS MB"]


def comparison(samples: list[Sample]) -> Table:
    """A line for each server, and the ratio of the first server to it."""
    lines: list[list[str]] = []
    servers = list(dict.fromkeys(sample.server for sample in samples))
    for row in dict.fromkeys(sample.row for sample in samples):
        of_row = [sample for sample in samples if sample.row == row]
        for measure in of_row[0].result.measures:
            name = row if len(of_row[0].result.measures) == 1 else f"{row}: {measure.name}"
            lines += row_lines(name, measure.name, servers, of_row)
    return Table([*HEADER, f"{servers[0]} / it", "low-high", "by CPU"], lines)


def row_lines(
    name: str, measure: str, servers: list[str], samples: list[Sample]
) -> Iterator[list[str]]:
    of = {server: [s for s in samples if s.server == server] for server in servers}
    subject = servers[0]
    for server in servers:
        cells = [name, *server_cells(server, measure, of[server])]
        if server == subject:
            yield [*cells, "", "", ""]
            continue
        pairs = list(zip(of[subject], of[server], strict=True))
        ratios = [ours.measure(measure).rate / its.measure(measure).rate for ours, its in pairs]
        by_cpu = [cpu_per_job(its.result) / cpu_per_job(ours.result) for ours, its in pairs]
        yield [*cells, ratio(ratios), span(ratios, 2), ratio(by_cpu)]


def server_cells(server: str, name: str, samples: list[Sample]) -> list[str]:
    measures = [sample.measure(name) for sample in samples]
    rates = [measure.rate for measure in measures]
    results = [sample.result for sample in samples]
    return [
        server,
        number(statistics.median(rates)),
        span(rates, 0),
        number(statistics.median(measure.p50 for measure in measures), 2),
        number(statistics.median(measure.p99 for measure in measures), 2),
        number(statistics.median(cpu_per_job(result) for result in results) * 1e6, 2),
        number(statistics.median(result.server_cpu for result in results), 2),
        number(statistics.median(result.load_cpu for result in results), 2),
        number(max(result.peak_rss_mb for result in results)),
    ]


def cpu_per_job(result: LoadResult) -> float:
    """Seconds of the server's processor time for one job of any kind in the row."""
    return result.server_cpu / sum(measure.rate for measure in result.measures)
