"""What shut gates cost workers that take from open queues: ticks alone, without a server.

There are ten open queues, and a thousand others with a backlog. In one database the others are open
and less urgent, so claims never reach them. In the other database they are as urgent, older, and
paused. Each tick settles the jobs in flight and claims as many, from all queues.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench.report import Progress, Table, number
from bench.servers import Lab
from bench.ticks import WORKERS, Ticks, plain_job, taken
from zq.model.commands import SetQueue, Succeed
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings
from zq.store.sqlite import upkeep
from zq.tick.walk import LONGEST_WALK

OTHERS = 1_000
BATCH = 10_000
URGENT, LATER = 100, 60_000


@dataclass(frozen=True)
class GateCost:
    """Processor µs a job, medians over ticks of `jobs` settled and claimed."""

    jobs: int
    waiting: int
    open: float
    paused: float


class Bench:
    """One database, and the ticks of four workers over it."""

    def __init__(self, path: Path) -> None:
        self._ticks = Ticks(path)

    def store(self, count: int, prefix: str, queues: int, priority: int, between: str = "") -> None:
        """Store jobs in turn over these queues, and every eleventh job in one of `between`."""
        for start in range(0, count, BATCH):
            numbers = range(start, min(start + BATCH, count))
            jobs = [
                plain_job(
                    n,
                    f"{between if between and n % 11 == 0 else prefix}{n % queues}",
                    priority=priority,
                )
                for n in numbers
            ]
            self._ticks.store(jobs, BATCH)

    def pause(self, prefix: str, queues: int) -> None:
        self._ticks.run(
            *(SetQueue(f"{prefix}{n}", QueueSettings(paused=True)) for n in range(queues))
        )

    def hold(self, jobs: int) -> None:
        """Take jobs, and never settle them."""
        self._ticks.run(claim=jobs)

    def ticks(self, jobs: int, reach: Reach = EVERYWHERE) -> Iterator[float]:
        """Thread seconds of each tick."""
        held = taken(self._ticks.run(claim=jobs, reach=reach))
        while held:
            began = time.thread_time()
            held = taken(self._ticks.run(Succeed(keys=held), claim=jobs, reach=reach))
            yield time.thread_time() - began
            upkeep.checkpoint(self._ticks.connection)


def gates(
    lab: Lab, sizes: list[int], waiting: int, ticks: int, queues: int, progress: Progress
) -> list[GateCost]:
    """Every size on both databases. Their ticks alternate."""
    progress.show(f"{waiting:,} jobs in {OTHERS:,} queues")
    free, shut = Bench(lab.directory / "open.db"), Bench(lab.directory / "paused.db")
    free.store(waiting, "other-", OTHERS, LATER)
    shut.store(waiting, "other-", OTHERS, URGENT)
    shut.pause("other-", OTHERS)
    # Claims pass the paused jobs once, a stretch in each tick. Only the ticks after that count.
    passing = waiting // LONGEST_WALK + 2
    for bench in (free, shut):
        bench.store(2 * (ticks + 2) * sum(sizes) + WORKERS * passing, "queue-", queues, URGENT)
        for _ in islice(bench.ticks(WORKERS), passing):
            pass
    found = []
    for jobs in sizes:
        progress.show(f"ticks of {jobs:,} jobs")
        runs = (free.ticks(jobs), shut.ticks(jobs))
        spent = [[next(run) for run in runs] for _ in range(ticks)]
        medians = [statistics.median(times) / jobs * 1e6 for times in zip(*spent, strict=True)]
        found.append(GateCost(jobs, waiting, *medians))
    progress.clear()
    return found


def gates_table(found: list[GateCost]) -> Table:
    """A line a size; µs of processor time a job."""
    header = ["jobs a tick", "µs a job, others open", "others paused", "ratio"]
    lines = [
        [
            number(each.jobs),
            number(each.open, 2),
            number(each.paused, 2),
            number(each.paused / each.open, 2),
        ]
        for each in found
    ]
    return Table(header, lines)
