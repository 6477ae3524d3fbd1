"""The rows of the comparison on servers that all run, in short turns: small differences show.

The speed of a busy machine changes within seconds, and the processor time of a job with it. Turns
that follow each other meet much the same machine, so the ratio of two of them hardly depends on it.
Of two processes of one program, one may need a twentieth more for as long as it lives: its memory
lies elsewhere. So each round has new servers, and the ratio is the mean of the rounds.
"""

from __future__ import annotations

import math
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, replace

from bench.compare import cpu_per_job, labels, turned
from bench.load import LoadSpec, Target, in_own_process, run_load
from bench.report import Progress, Table, number
from bench.rows import ROWS
from bench.servers import Lab

BACKLOG = 10_000
"""At most so many jobs are stored for workers before each turn, which ends when they are taken."""


@dataclass(frozen=True)
class Turns:
    """Microseconds of a server's processor time for one job of a row: its turns, by rounds."""

    row: str
    server: str
    cpu_us: list[list[float]]


def turns(
    lab: Lab,
    servers: list[str],
    rows: list[str],
    rounds: int,
    turns: int,
    seconds: float,
    queues: int,
    progress: Progress,
) -> list[Turns]:
    """Each row on all servers at once. Turns begin with another server each time."""
    found = []
    for row in rows:
        spec = ROWS[row].spec(queues, seconds)
        spec = replace(spec, warm_up=0.0, backlog=min(spec.backlog, BACKLOG))
        costs = []
        for done in range(rounds):
            progress.show(f"{row}: round {done + 1}/{rounds} of {', '.join(servers)}")
            with ExitStack() as stack:
                targets = [stack.enter_context(lab.server(each)) for each in servers]
                costs.append(in_own_process(run_turns, targets, spec, turns))
        by_server = zip(labels(servers), zip(*costs, strict=True), strict=True)
        found += [Turns(row, label, list(of_rounds)) for label, of_rounds in by_server]
    progress.clear()
    return found


def run_turns(targets: list[Target], spec: LoadSpec, turns: int) -> list[list[float]]:
    """The costs of each server in its turns. The first turn of each warms it up."""
    costs: dict[int, list[float]] = {target.port: [] for target in targets}
    for turn in range(turns + 1):
        for target in turned(targets, turn):
            costs[target.port].append(cpu_per_job(run_load(target, spec)) * 1e6)
    return [each[1:] for each in costs.values()]


def turns_table(found: list[Turns]) -> Table:
    """A line for each server, with the first one's ratio to it and the standard error of that."""
    lines = []
    subject = found[0]
    for each in found:
        of_rounds = [statistics.median(cpu_us) for cpu_us in each.cpu_us]
        line = [each.row, each.server, number(statistics.median(of_rounds), 2)]
        if each.row != subject.row:
            subject = each
        if each is subject:
            lines.append([*line, "", ""])
            continue
        rounds = zip(subject.cpu_us, each.cpu_us, strict=True)
        ratios = [statistics.median(map(float.__truediv__, its, ours)) for ours, its in rounds]
        error = statistics.stdev(ratios) / math.sqrt(len(ratios))
        lines.append([*line, number(statistics.fmean(ratios), 3), number(error, 3)])
    return Table(["row", "server", "CPU µs/job", f"{found[0].server} / it, by CPU", "±"], lines)
