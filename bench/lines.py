"""What jobs that wait for a budget cost workers that take others: ticks alone, without a server.

`python -m bench.lines --waiting 1000000`. In one database no job waits for a budget. In the other,
a job in flight holds the budget, and many older jobs of the same priority wait for it. Each tick
settles the jobs that it claimed before and claims as many, from all queues.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import click
from msgspec.structs import replace

from bench.gates import BATCH, URGENT, Bench
from bench.ticks import Ticks, plain_job
from zq.model.budget_commands import CreateBudget
from zq.model.budgets import BudgetPolicy, Draw
from zq.model.job import JobSettings

SIZES = (100, 10)
TICKS = 60
DRAWS = JobSettings(budgets=(Draw("crowd"),))


def crowd(path: Path, waiting: int) -> None:
    """A budget of one token, and jobs that draw from it."""
    ticks = Ticks(path)
    ticks.run(CreateBudget("crowd", BudgetPolicy(1)))
    for start in range(0, waiting, BATCH):
        numbers = range(start, min(start + BATCH, waiting))
        jobs = [replace(plain_job(n, "crowd", priority=URGENT), options=DRAWS) for n in numbers]
        ticks.store(jobs, BATCH)
    ticks.connection.close()


@click.command()
@click.option("--waiting", default=1_000_000, show_default=True)
def main(waiting: int) -> None:
    """Print processor µs a job, medians over ticks, and their ratio."""
    with tempfile.TemporaryDirectory() as directory:
        free, crowded = Path(directory) / "free.db", Path(directory) / "crowded.db"
        crowd(crowded, waiting)
        benches = [Bench(free), Bench(crowded)]
        benches[1].hold(1)
        for bench in benches:
            bench.store(2 * (TICKS + 4) * sum(SIZES), "queue-", 10, URGENT)
        for jobs in SIZES:
            runs = [bench.ticks(jobs) for bench in benches]
            for run in runs:
                next(run)
            spent = [[next(run) for run in runs] for _ in range(TICKS)]
            alone, beside = [
                statistics.median(times) / jobs * 1e6 for times in zip(*spent, strict=True)
            ]
            print(f"{jobs} jobs a tick: {alone:.2f}, beside {waiting:,}: {beside:.2f} µs a job")
            print(f"ratio {beside / alone:.3f}")


if __name__ == "__main__":
    main()
