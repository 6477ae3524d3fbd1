"""The comparison: the same rows on two servers, interleaved by rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.actors import Measure
from bench.load import LoadResult, in_own_process, run_load
from bench.report import Progress, Table, number, ratio, span
from bench.rows import ROWS
from bench.servers import Lab

BASELINE = "baseline"
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


@dataclass(frozen=True)
class Plan:
    rows: list[str]
    rounds: int
    seconds: float
    queues: int
    subject: str

    def runs(self) -> Iterator[tuple[int, str, str, str]]:
        """Round, row, label, server; every other round the baseline goes first."""
        pair = [(self.subject_label, self.subject), (BASELINE, BASELINE)]
        for turn in range(1, self.rounds + 1):
            pair.reverse()
            for row in self.rows:
                for label, server in pair:
                    yield turn, row, label, server

    @property
    def subject_label(self) -> str:
        # The baseline against itself shows what the machine's noise alone makes of a ratio.
        return "baseline again" if self.subject == BASELINE else self.subject


def compare(lab: Lab, plan: Plan, progress: Progress) -> list[Sample]:
    samples = []
    runs = list(plan.runs())
    for done, (turn, row, label, server) in enumerate(runs, start=1):
        progress.show(f"{done}/{len(runs)} round {turn} {row} {label}")
        spec = ROWS[row].spec(plan.queues, plan.seconds)
        if server == ENDLESS:
            spec = replace(spec, backlog=0)
        with lab.server(server) as target:
            result = in_own_process(run_load, target, spec)
        samples.append(Sample(row, turn, label, result))
    progress.clear()
    return samples


HEADER = ["row", "server", "jobs/s", "low-high", "p50 ms", "p99 ms", "CPU µs/job"]
HEADER += ["server CPU", "load CPU", "peak RSS MB", "ratio", "low-high", "by CPU"]


def comparison(plan: Plan, samples: list[Sample]) -> Table:
    lines: list[list[str]] = []
    for row in plan.rows:
        of_row = [sample for sample in samples if sample.row == row]
        for measure in of_row[0].result.measures:
            name = row if len(of_row[0].result.measures) == 1 else f"{row}: {measure.name}"
            lines += pair_lines(name, measure.name, plan.subject_label, of_row)
    return Table(HEADER, lines)


def pair_lines(name: str, measure: str, subject: str, samples: list[Sample]) -> Iterator[list[str]]:
    """The subject's line with its ratio, then the baseline's."""
    of = {server: [s for s in samples if s.server == server] for server in (subject, BASELINE)}
    ratios = [
        ours.measure(measure).rate / theirs.measure(measure).rate
        for ours, theirs in zip(of[subject], of[BASELINE], strict=True)
    ]
    by_cpu = [
        cpu_per_job(theirs.result) / cpu_per_job(ours.result)
        for ours, theirs in zip(of[subject], of[BASELINE], strict=True)
    ]
    ours = server_cells(subject, measure, of[subject])
    yield [name, *ours, ratio(ratios), span(ratios, 2), ratio(by_cpu)]
    yield [name, *server_cells(BASELINE, measure, of[BASELINE]), "", "", ""]


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
