"""Where the processor time of one tick goes, statement by statement, in zq and in the baseline.

Ticks run alone, without a server: jobs are stored and claimed for four workers, and each tick
settles some and claims as many. A busy machine hardly changes thread time: small differences show.
"""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import orjson

from bench import baseline
from bench.report import Progress, Table, number
from bench.servers import Lab
from bench.ticks import NOW, Ticks, new_job, taken, text
from zq.model.commands import Succeed
from zq.store.sqlite import upkeep

BACKLOG_TICKS = 100

STEPS = (
    ("read what is settled", "WHERE status = 2"),
    ("delete", "DELETE FROM jobs"),
    ("read the claim", "LIMIT"),
    ("read the claim", "SELECT json_group_array(json_array("),
    ("mark as taken", "UPDATE jobs"),
    ("count", "INSERT INTO queue_counts"),
    ("commit", "COMMIT"),
)
"""The purpose of a statement, by a part of its text. The first part that fits counts."""

WHOLE = "whole tick"
REST = "begin, Python"


class Stopwatch:
    """A connection that adds up the thread time of statements by their purpose."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._connection = connection

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def cursor(self) -> Stopwatch:
        return self

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        began = time.thread_time()
        cursor = self._connection.execute(sql, parameters)
        self.spent[purpose(sql)] += time.thread_time() - began
        return cursor


def purpose(sql: str) -> str:
    return next((step for step, part in STEPS if part in sql), REST)


@dataclass(frozen=True)
class Cost:
    """Processor µs a job of each step, medians over ticks of `jobs` settled and claimed."""

    server: str
    jobs: int
    steps: dict[str, float]


def cost(lab: Lab, sizes: list[int], ticks: int, queues: int, progress: Progress) -> list[Cost]:
    """Every size on both stores. Their ticks alternate."""
    found = []
    for jobs in sizes:
        progress.show(f"ticks of {jobs:,} jobs")
        runs = {
            "zq": zq_ticks(lab.directory / f"zq-{jobs}.db", jobs, queues),
            "baseline": baseline_ticks(lab.directory / f"baseline-{jobs}.db", jobs, queues),
        }
        spent: dict[str, list[dict[str, float]]] = {server: [] for server in runs}
        for _ in range(ticks):
            for server, run in runs.items():
                spent[server].append(next(run))
        found += [Cost(server, jobs, median(each, jobs)) for server, each in spent.items()]
    progress.clear()
    return found


def median(ticks: list[dict[str, float]], jobs: int) -> dict[str, float]:
    names = {name for tick in ticks for name in tick}
    return {
        name: statistics.median(tick.get(name, 0.0) for tick in ticks) / jobs * 1e6
        for name in names
    }


def timed(watch: Stopwatch, run: Callable[[], object]) -> dict[str, float]:
    watch.spent.clear()
    began = time.thread_time()
    run()
    whole = time.thread_time() - began
    steps = {name: spent for name, spent in watch.spent.items() if name != REST}
    return {**steps, REST: whole - sum(steps.values()), WHOLE: whole}


def zq_ticks(path: Path, jobs: int, queues: int) -> Iterator[dict[str, float]]:
    watches: list[Stopwatch] = []

    def watched(connection: sqlite3.Connection) -> sqlite3.Connection:
        watches.append(Stopwatch(connection))
        return cast(sqlite3.Connection, watches[0])

    ticks = Ticks(path, watched)
    ticks.store([new_job(n, queues) for n in range(BACKLOG_TICKS * max(jobs, 1000))])
    held = ticks.claim(jobs)

    def run() -> None:
        held[:] = taken(ticks.run(Succeed(keys=list(held)), claim=jobs))

    while held:
        yield timed(watches[0], run)
        upkeep.checkpoint(ticks.connection)


def baseline_ticks(path: Path, jobs: int, queues: int) -> Iterator[dict[str, float]]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(f"PRAGMA synchronous = NORMAL; {baseline.SCHEMA}")
    watch = cast(sqlite3.Connection, stopwatch := Stopwatch(connection))
    first = NOW << 20
    for start in range(0, BACKLOG_TICKS * max(jobs, 1000), 1000):
        rows = [
            (first + n, f"queue-{n % queues}", "send-email", baseline.PRIORITY, NOW, text(n))
            for n in range(start, start + 1000)
        ]
        baseline.transaction(watch, rows, [], 0)
    held: list[int] = []

    def run(credit: int) -> None:
        held[:] = [row[0] for row in orjson.loads(baseline.transaction(watch, [], held, credit))]

    run(jobs)
    while held:
        yield timed(stopwatch, partial(run, jobs))


def cost_table(found: list[Cost]) -> Table:
    """A line a step; µs of processor time a job."""
    steps = [*dict.fromkeys(step for step, _ in STEPS), REST, WHOLE]
    header = ["µs a job", *(f"{each.server}, {each.jobs:,} a tick" for each in found)]
    lines = [[step, *(number(each.steps.get(step, 0.0), 2) for each in found)] for step in steps]
    return Table(header, lines)
