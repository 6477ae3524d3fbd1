"""Request and response through the Python library: many callers, one worker in another thread."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import zq
from bench.load import Target, in_own_process, run
from bench.report import Progress, Table, number
from bench.servers import Lab
from zq.client.task import AsyncTask

CONCURRENCY = 100
WARM_UP = 50


@dataclass(frozen=True)
class Case:
    """How many calls there are, how many are under way at a time, and bytes of a payload."""

    requests: int
    at_once: int
    payload: int = 100


CASES = (
    *(Case(100, 1), Case(500, 10), Case(1000, 50)),
    *(Case(200, 10, 10_000), Case(2000, 100)),
)


@dataclass(frozen=True)
class Calls:
    """The figures of one case in one round: calls a second, and times of a call in ms."""

    case: Case
    rate: float
    times_ms: list[float]


def make(port: int) -> tuple[zq.App, AsyncTask[[str], str]]:
    """An app with a task that returns its argument."""
    app = zq.App(f"http://127.0.0.1:{port}")

    @app.task(queue="bench", result_ttl=None)
    async def echo(text: str) -> str:
        return text

    return app, echo


@contextmanager
def working(port: int) -> Iterator[None]:
    """A worker in a thread and an event loop of its own."""
    app, _ = make(port)
    worker = zq.Worker(app, concurrency=CONCURRENCY)
    loops: list[asyncio.AbstractEventLoop] = []

    async def work() -> None:
        loops.append(asyncio.get_running_loop())
        async with app:
            await worker.run()

    thread = threading.Thread(target=run, args=(work(),))
    thread.start()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(worker.stop(), loops[0]).result()
        thread.join()


async def measure(port: int, case: Case) -> Calls:
    app, echo = make(port)
    text = "x" * case.payload
    times: list[float] = []
    left = iter(range(case.requests))

    async def caller() -> None:
        for _ in left:
            began = time.perf_counter()
            await echo.call(text)
            times.append((time.perf_counter() - began) * 1e3)

    async with app:
        for _ in range(WARM_UP):
            await echo.call(text)
        began = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(case.at_once)))
        return Calls(case, case.requests / (time.perf_counter() - began), times)


def run_case(target: Target, case: Case) -> Calls:
    with working(target.port):
        return run(measure(target.port, case))


def calls(lab: Lab, rounds: int, progress: Progress) -> list[Calls]:
    """Each case in a process of its own, beside a fresh server."""
    found = []
    for turn in range(rounds):
        for case in CASES:
            progress.show(
                f"round {turn + 1}/{rounds} {case.requests} calls, {case.at_once} at once"
            )
            with lab.server("zq") as target:
                found.append(in_own_process(run_case, target, case))
    progress.clear()
    return found


def calls_table(found: list[Calls]) -> Table:
    lines = []
    for case in CASES:
        of_case = [each for each in found if each.case == case]
        times = sorted(ms for each in of_case for ms in each.times_ms)
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        shown = (times[0], cuts[49], cuts[94], cuts[98], times[-1], statistics.mean(times))
        rate = statistics.median(each.rate for each in of_case)
        head = (case.requests, case.at_once, case.payload, rate)
        lines.append([*(number(each) for each in head), *(number(ms, 2) for ms in shown)])
    times_of = ["min ms", "p50", "p95", "p99", "max", "mean"]
    return Table(["calls", "at once", "bytes", "calls/s", *times_of], lines)
