"""What jobs in lines cost: with budgets or fair keys, beside plain jobs. Ticks alone, no server.

Each tick settles the jobs that it claimed before and claims as many. No budget and no key is at its
limit, so both databases hand out jobs at each tick.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.gates import BATCH
from bench.report import Progress, Table, number
from bench.servers import Lab
from bench.ticks import Ticks, plain_job, taken
from zq.features.budgets.model import MOST_TOKENS, BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, drawing
from zq.model.commands import Succeed
from zq.model.job import JobSettings, NewJob
from zq.store.sqlite import upkeep

QUEUE = "shared"
WARM_UP = 3
AIM = 0.9
"""The least acceptable ratio of the rates."""

KINDS = ("fair keys", "budgets")


@dataclass(frozen=True)
class ShareCost:
    """Processor µs a job, stored in bulk, and settled and claimed in ticks of `jobs`; medians."""

    kind: str
    number: int
    jobs: int
    plain: float
    shared: float
    plain_stored: float
    shared_stored: float


class Bench:
    """One database with a backlog of jobs of one kind."""

    def __init__(self, path: Path, kind: str | None, number: int) -> None:
        self._ticks = Ticks(path, options={"max_budgets": number})
        self._kind, self._number = kind, number
        if kind == "budgets":
            for start in range(0, number, BATCH):
                some = range(start, min(start + BATCH, number))
                policy = BudgetPolicy(MOST_TOKENS)
                self._ticks.run(*[CreateBudget(f"budget-{n}", policy) for n in some])

    def store(self, count: int) -> float:
        """Store jobs, the budgets and keys in turn. Return the processor µs a job."""
        spent = 0.0
        for start in range(0, count, BATCH):
            jobs = [self._job(n) for n in range(start, min(start + BATCH, count))]
            command = self._ticks.enqueue(jobs)
            began = time.thread_time()
            self._ticks.run(command)
            spent += time.thread_time() - began
            upkeep.checkpoint(self._ticks.connection)
        return spent / count * 1e6

    def ticks(self, jobs: int) -> Iterator[float]:
        """Thread seconds of each tick."""
        held = taken(self._ticks.run(claim=jobs))
        while held:
            began = time.thread_time()
            held = taken(self._ticks.run(Succeed(keys=held), claim=jobs))
            yield time.thread_time() - began
            upkeep.checkpoint(self._ticks.connection)

    def _job(self, n: int) -> NewJob:
        options = None
        if self._kind == "budgets":
            options = drawing((Draw(f"budget-{n % self._number}"),))
        elif self._kind is not None:
            options = JobSettings(fair_key=f"key-{n % self._number}")  # type: ignore[call-arg]
        return plain_job(n, QUEUE, options=options)


def shares(
    lab: Lab, sizes: list[int], numbers: list[int], ticks: int, progress: Progress
) -> list[ShareCost]:
    """Every kind, number and size beside plain jobs. The ticks of both alternate."""
    found = []
    for kind in KINDS:
        for count in numbers:
            progress.show(f"{count:,} {kind}")
            jobs = max((WARM_UP + ticks + 2) * sum(sizes), count)
            names = (kind, None)
            benches = [
                Bench(lab.directory / f"{kind}-{count}-{name}.db", name, count) for name in names
            ]
            stored = [bench.store(jobs) for bench in benches]
            for size in sizes:
                progress.show(f"{count:,} {kind}, ticks of {size:,} jobs")
                runs = [bench.ticks(size) for bench in benches]
                spent = [[next(run) for run in runs] for _ in range(WARM_UP + ticks)][WARM_UP:]
                shared, plain = [
                    statistics.median(times) / size * 1e6 for times in zip(*spent, strict=True)
                ]
                found.append(ShareCost(kind, count, size, plain, shared, stored[1], stored[0]))
    progress.clear()
    return found


def shares_table(found: list[ShareCost]) -> Table:
    """A line a kind, number and size. A ratio is that of the rates, by processor time."""
    header = ["kind", "number", "jobs a tick", "plain µs/job", "µs/job", "ratio", "aim", "stored"]
    lines = [
        [
            *(each.kind, number(each.number), number(each.jobs)),
            *(number(each.plain, 2), number(each.shared, 2)),
            *(number(each.plain / each.shared, 2), number(AIM, 1)),
            number(each.plain_stored / each.shared_stored, 2),
        ]
        for each in found
    ]
    return Table(header, lines)
