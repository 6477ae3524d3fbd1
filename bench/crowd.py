"""What one shut queue costs workers that take from very many open queues: ticks alone.

There are ten thousand open queues with the same jobs in every case. In the first case no gate is
shut. Two others add a paused queue, empty or with older jobs. In the last one a key may claim from
a prefix only, and jobs of other queues, a tenth as many, lie in between.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bench.gates import URGENT, Bench
from bench.report import Progress, Table, number
from bench.servers import Lab
from zq.model.reach import EVERYWHERE, reach_of

QUEUES = 10_000
WARM_UP = 40
"""How many ticks pass before the first that counts: claims pass old jobs only once."""

CASES = ("none paused", "one paused, empty", "one paused, older jobs", "limited to a prefix")
AIMS = (1.0, 0.9, 0.9, 0.8)


@dataclass(frozen=True)
class CrowdCost:
    """Processor µs a job by case, medians over ticks of `jobs` settled and claimed."""

    jobs: int
    costs: dict[str, float]


def crowd(
    lab: Lab, sizes: list[int], waiting: int, ticks: int, progress: Progress
) -> list[CrowdCost]:
    """Every size on the databases of all cases. Their ticks alternate."""
    found = []
    for jobs in sizes:
        progress.show(f"ticks of {jobs:,} jobs")
        benches = []
        for number_, case in enumerate(CASES):
            bench = Bench(lab.directory / f"{jobs}-{number_}.db")
            total = jobs * (WARM_UP + ticks + 2)
            if case == CASES[2]:
                bench.store(waiting, "shut-", 1, URGENT)
            between = "other-" if case == CASES[3] else ""
            bench.store(total + total // 5, "queue-", QUEUES, URGENT, between)
            if case in CASES[1:3]:
                bench.pause("shut-", 1)
            benches.append(bench)
        reaches = (EVERYWHERE, EVERYWHERE, EVERYWHERE, reach_of(["queue-"]))
        runs = [bench.ticks(jobs, reach) for bench, reach in zip(benches, reaches, strict=True)]
        spent = [[next(run) for run in runs] for _ in range(WARM_UP + ticks)][WARM_UP:]
        medians = [statistics.median(times) / jobs * 1e6 for times in zip(*spent, strict=True)]
        found.append(CrowdCost(jobs, dict(zip(CASES, medians, strict=True))))
    progress.clear()
    return found


def crowd_table(found: list[CrowdCost]) -> Table:
    """A line a case: µs of processor time a job, and the ratio of the rate to the first case."""
    header = [
        "µs a job (rate beside the first)",
        "aim",
        *(f"{each.jobs:,} a tick" for each in found),
    ]
    lines = []
    for case, aim in zip(CASES, AIMS, strict=True):
        cells = [
            f"{number(each.costs[case], 2)} ({number(each.costs[CASES[0]] / each.costs[case], 2)})"
            for each in found
        ]
        lines.append([case, number(aim, 1), *cells])
    return Table(header, lines)
