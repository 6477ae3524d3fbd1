"""Servers that share a database of PostgreSQL, beside one server of it and one of a directory.

The load is the same for all: as many processes as there are servers at most, each on a server of
its own, or on one that it shares. Or each server has all connections of a row to itself: then its
ticks are as large as those of one server, and those of several can be waited for at once.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from threading import Barrier

from bench.actors import bulk_requests
from bench.load import LoadResult, LoadSpec, Session, Target, apart, fill, measure, run, start
from bench.report import Progress, Table, number, ratio, span
from bench.rows import ROWS
from bench.servers import Lab

DIRECTORY = 0
"""How many servers of PostgreSQL there are where one server has a directory."""


@dataclass(frozen=True)
class Sum:
    """What all processes of a load got together. CPU is in processor seconds a second."""

    row: str
    round: int
    servers: int
    rate: float
    server_cpu: float
    database_cpu: float
    load_cpu: float

    @property
    def cost(self) -> float:
        """Microseconds of a processor that a job takes, without the load's."""
        return (self.server_cpu + self.database_cpu) / self.rate * 1e6


def several(
    lab: Lab,
    rows: Sequence[str],
    counts: Sequence[int],
    rounds: int,
    seconds: float,
    queues: int,
    each: bool,
    progress: Progress,
) -> list[Sum]:
    """Each row by each number of servers, in turns.

    With `each`, every server has all connections of a row.
    """
    found = []
    for turn in range(1, rounds + 1):
        for row in rows:
            for count in counts:
                progress.show(f"round {turn} {row} {_name(count)}")
                with _targets(lab, count) as targets:
                    processes = len(targets) if each else max(counts)
                    parts = 1 if each else processes
                    spec = _part(ROWS[row].spec(queues, seconds), parts, processes)
                    found.append(_sum(row, turn, count, _run(targets, spec, processes)))
    progress.clear()
    return found


def several_table(found: Sequence[Sum]) -> Table:
    """A line a row and a number of servers. The ratio is to the first number, round by round."""
    first = found[0].servers
    lines = []
    for row in dict.fromkeys(each.row for each in found):
        for count in dict.fromkeys(each.servers for each in found):
            own = [each for each in found if (each.row, each.servers) == (row, count)]
            before = [each.rate for each in found if (each.row, each.servers) == (row, first)]
            rates = [each.rate for each in own]
            lines.append(
                [
                    *(row, _name(count), number(statistics.median(rates)), span(rates, 0)),
                    ratio([rate / old for rate, old in zip(rates, before, strict=True)]),
                    number(statistics.median(each.server_cpu for each in own), 2),
                    number(statistics.median(each.database_cpu for each in own), 2),
                    number(statistics.median(each.load_cpu for each in own), 2),
                    number(statistics.median(each.cost for each in own)),
                ]
            )
    header = ["row", "servers", "jobs/s", "span", "ratio", "CPU", "database's", "load's", "µs/job"]
    return Table(header, lines)


def _name(count: int) -> str:
    return f"{count} on PostgreSQL" if count else "1 in a directory"


@contextlib.contextmanager
def _targets(lab: Lab, count: int) -> Iterator[list[Target]]:
    if count == DIRECTORY:
        with lab.server("zq") as target:
            yield [target]
        return
    with lab.sharing(count) as targets:
        yield targets


def _part(spec: LoadSpec, parts: int, processes: int) -> LoadSpec:
    """One of so many parts of a load. All processes share the backlog."""
    return replace(
        spec,
        bulk=spec.bulk // parts,
        single=spec.single // parts,
        backlog=spec.backlog // processes,
        workers=spec.workers and replace(spec.workers, count=spec.workers.count // parts),
    )


def _run(targets: Sequence[Target], spec: LoadSpec, processes: int) -> list[LoadResult]:
    """Run a load in each of some processes."""
    context = apart()
    with context.Manager() as manager, ProcessPoolExecutor(processes, mp_context=context) as pool:
        filled = manager.Barrier(processes)
        running = [
            pool.submit(_load, targets[nth % len(targets)], spec, filled)
            for nth in range(processes)
        ]
        return [each.result() for each in running]


def _load(target: Target, spec: LoadSpec, filled: Barrier) -> LoadResult:
    async def load() -> LoadResult:
        session = Session(target.port)
        try:
            bulks = bulk_requests(spec.queues, spec.groups, spec.keys, spec.budgets)
            await fill(session, bulks, spec.backlog)
            # Nothing else runs in this process.
            filled.wait()
            meters = await start(session, spec, bulks)
            return await measure(session, target, spec, meters)
        finally:
            session.close()

    return run(load())


def _sum(row: str, turn: int, count: int, results: Sequence[LoadResult]) -> Sum:
    rates = [measure.rate for result in results for measure in result.measures]
    # Processes that share a server have each seen all of its time.
    shared = len(results) // max(count, 1)
    cpu = sum(result.server_cpu for result in results) / shared
    # Each has seen all of the database's.
    database = statistics.median(result.database_cpu for result in results)
    load = sum(result.load_cpu for result in results)
    return Sum(row, turn, count, sum(rates), cpu, database, load)
