"""The Python library on zq: how fast one process works, enqueues and calls."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import zq
from bench.actors import percentiles
from bench.load import Target, in_own_process, run
from bench.report import Progress, Table, number, span
from bench.servers import Lab
from zq.client.task import AsyncTask

CONCURRENCY = 100
PREFETCH = 1000
PACE = {"worker": 20_000, "enqueue_many": 70_000, "call": 300}
"""Jobs for each second of the measured time: the size of a run."""

WARM_UP = 50
AIMS = {"worker": "15,000/s", "enqueue_many": "60,000/s", "call": "p50 5 ms"}


@dataclass(frozen=True)
class Run:
    """One row in one round: jobs a second, processor time of the library, times of a call."""

    row: str
    rate: float
    cpu_us: float
    p50_ms: float | None = None
    p99_ms: float | None = None


def make(port: int) -> tuple[zq.App, AsyncTask[[int], None]]:
    """An app with a task that does nothing and whose result is not kept."""
    app = zq.App(f"http://127.0.0.1:{port}")

    @app.task(queue="bench", result_ttl=None)
    async def nothing(_: int) -> None: ...

    return app, nothing


async def enqueue_many(target: Target, jobs: int) -> Run:
    """One call of `enqueue_many`, whose arguments come from a generator."""
    app, nothing = make(target.port)
    async with app:
        await nothing.enqueue_many(nothing.args(n) for n in range(WARM_UP))
        return await timed(
            "enqueue_many", jobs, lambda: nothing.enqueue_many(map(nothing.args, range(jobs)))
        )


async def worker(target: Target, jobs: int) -> Run:
    """A worker that empties the queue, from its start to its last acknowledgement."""
    app, nothing = make(target.port)
    async with app:
        await nothing.enqueue_many(nothing.args(n) for n in range(jobs))
        worker = zq.Worker(app, concurrency=CONCURRENCY, prefetch=PREFETCH, max_jobs=jobs)
        return await timed("worker", jobs, worker.run)


async def call(target: Target, jobs: int) -> Run:
    """Calls one after the other. The worker is in the same process."""
    app, nothing = make(target.port)
    times: list[float] = []

    async def calls() -> None:
        for n in range(jobs):
            began = time.perf_counter()
            await nothing.call(n)
            times.append(time.perf_counter() - began)

    async with app:
        worker = zq.Worker(app, concurrency=CONCURRENCY)
        working = asyncio.create_task(worker.run())
        for n in range(WARM_UP):
            await nothing.call(n)
        found = await timed("call", jobs, calls)
        await worker.stop()
        await working
    p50, p99 = percentiles(times)
    return Run("call", found.rate, found.cpu_us, p50 * 1e3, p99 * 1e3)


async def timed(row: str, jobs: int, work: Callable[[], Awaitable[object]]) -> Run:
    """Jobs a second of wall time, and microseconds of processor time a job."""
    began, cpu = time.perf_counter(), time.process_time()
    await work()
    seconds = time.perf_counter() - began
    return Run(row, jobs / seconds, (time.process_time() - cpu) / jobs * 1e6)


ROWS = {"worker": worker, "enqueue_many": enqueue_many, "call": call}


def run_row(row: str, target: Target, jobs: int) -> Run:
    return run(ROWS[row](target, jobs))


def library(lab: Lab, rounds: int, seconds: float, progress: Progress) -> list[Run]:
    """Each row in a process of its own, beside a fresh server."""
    found = []
    for turn in range(rounds):
        for row, pace in PACE.items():
            progress.show(f"round {turn + 1}/{rounds} {row}")
            with lab.server("zq") as target:
                found.append(in_own_process(run_row, row, target, round(pace * seconds)))
    progress.clear()
    return found


def library_table(runs: list[Run]) -> Table:
    lines = []
    for row, aim in AIMS.items():
        of_row = [each for each in runs if each.row == row]
        rates = [each.rate for each in of_row]
        cells = [number(statistics.median(rates)), span(rates, 0)]
        cells.append(number(statistics.median(each.cpu_us for each in of_row), 1))
        p50s = [each.p50_ms for each in of_row if each.p50_ms is not None]
        p99s = [each.p99_ms for each in of_row if each.p99_ms is not None]
        cells += [number(statistics.median(ms), 2) if ms else "" for ms in (p50s, p99s)]
        lines.append([row, *cells, aim])
    return Table(["row", "jobs/s", "low-high", "CPU µs/job", "p50 ms", "p99 ms", "aim"], lines)
