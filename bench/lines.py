"""What jobs that wait for a budget cost workers that take others: ticks alone, without a server.

In one database no job waits for a budget. In the other, a job in flight holds the budget, and many
older jobs of the same priority wait for it. Each tick settles the jobs that it claimed before and
claims as many, from all queues.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from bench.gates import BATCH, URGENT, Bench
from bench.report import Progress, Table, number
from bench.servers import Lab
from bench.ticks import Ticks, plain_job
from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, drawing

WARM_UP = 2
DRAWS = drawing((Draw("crowd"),))
AIM = 1.1
"""The largest acceptable ratio of the costs."""


@dataclass(frozen=True)
class LineCost:
    """Processor µs a job, medians over ticks of `jobs` settled and claimed."""

    jobs: int
    waiting: int
    alone: float
    beside: float


def lines(
    lab: Lab, sizes: list[int], waiting: int, ticks: int, progress: Progress
) -> list[LineCost]:
    """Every size on both databases. Their ticks alternate."""
    free, crowded = lab.directory / "free.db", lab.directory / "crowded.db"
    wait_for_budget(crowded, waiting, progress)
    benches = [Bench(free), Bench(crowded)]
    benches[1].hold(1)
    for bench in benches:
        bench.store((WARM_UP + ticks + 2) * sum(sizes), "queue-", 10, URGENT)
    found = []
    for jobs in sizes:
        progress.show(f"ticks of {jobs:,} jobs")
        runs = [bench.ticks(jobs) for bench in benches]
        spent = [[next(run) for run in runs] for _ in range(WARM_UP + ticks)][WARM_UP:]
        medians = [statistics.median(times) / jobs * 1e6 for times in zip(*spent, strict=True)]
        found.append(LineCost(jobs, waiting, *medians))
    progress.clear()
    return found


def wait_for_budget(path: Path, waiting: int, progress: Progress) -> None:
    """Store a budget of one token, and jobs that draw from it."""
    ticks = Ticks(path)
    ticks.run(CreateBudget("crowd", BudgetPolicy(1)))
    for start in range(0, waiting, BATCH):
        progress.show(f"{start:,} of {waiting:,} jobs wait")
        numbers = range(start, min(start + BATCH, waiting))
        jobs = [replace(plain_job(n, "crowd", priority=URGENT), options=DRAWS) for n in numbers]
        ticks.store(jobs, BATCH)
    ticks.connection.close()


def lines_table(found: list[LineCost]) -> Table:
    """A line a size of ticks. `ratio` is the cost beside those that wait over the cost alone."""
    table = []
    for each in found:
        costs = [number(each.alone, 2), number(each.beside, 2), number(each.beside / each.alone, 2)]
        table.append([number(each.jobs), number(each.waiting), *costs, number(AIM, 1)])
    header = ["jobs a tick", "waiting", "alone µs/job", "beside µs/job", "ratio", "aim"]
    return Table(header, table)
