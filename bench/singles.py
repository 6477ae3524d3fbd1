"""Single enqueues through the Python library beside requests written by hand, by callers.

Every caller enqueues one job after the other, and all callers of a run are in one process. With
`http` each caller has a connection, rendered and read by `bench.http1`. With the library it calls
`await task.enqueue(…)`. With `blocking` there is one caller, without an event loop. The runs of a
round alternate, each in a process of its own beside a fresh server.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import msgspec

import zq
from bench.http1 import Connection, post
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number, ratio, span
from bench.servers import Lab

CALLERS = (1, 8, 64)
PACE = {1: 1_000, 8: 4_000, 64: 8_000}
"""Jobs a second: the size of a run."""

WARM_UP = 200
AIM = 0.8
BLOCKING = "library, blocking"
LIBRARY = "library"
HTTP = "http"

Enqueue = Callable[[int], Awaitable[object]]


@dataclass(frozen=True)
class Run:
    """Jobs a second, and microseconds of the producer's processor time a job."""

    way: str
    callers: int
    rate: float
    cpu_us: float


def nothing(number: int) -> None: ...


def document(number: int) -> bytes:
    """The body that the library sends for `nothing(number)`."""
    backoff = {"exponent": 1.5, "base_ms": 0, "jitter_ms": 200}
    job = {"queue": "bench", "type": "nothing", "payload": {"args": [number], "kwargs": {}}}
    more = {"retry_limit": 2, "backoff": backoff, "retention": {"completed_ms": 0}}
    return msgspec.json.encode(job | more)


class Lines:
    """One connection for each caller."""

    def __init__(self) -> None:
        self._idle: list[Connection] = []
        self._answered: dict[Connection, asyncio.Future[None]] = {}

    async def open(self, session: Session, count: int) -> None:
        for _ in range(count):
            self._idle.append(await session.connect(lambda: Connection(self._on_reply)))

    async def enqueue(self, number: int) -> None:
        connection = self._idle.pop()
        answered = asyncio.get_running_loop().create_future()
        self._answered[connection] = answered
        connection.send(post("/jobs", document(number)))
        await answered

    def _on_reply(self, connection: Connection, _: float) -> None:
        self._idle.append(connection)
        self._answered.pop(connection).set_result(None)


async def by_http(target: Target, callers: int, jobs: int) -> Run:
    session, lines = Session(target.port), Lines()
    try:
        await lines.open(session, callers)
        return await timed(HTTP, lines.enqueue, callers, jobs)
    finally:
        session.close()


async def by_library(target: Target, callers: int, jobs: int) -> Run:
    async with zq.App(f"http://127.0.0.1:{target.port}") as app:
        task = app.task(queue="bench", result_ttl=None)(nothing)
        return await timed(LIBRARY, task.enqueue, callers, jobs)


async def timed(way: str, enqueue: Enqueue, callers: int, jobs: int) -> Run:
    first, left = iter(range(WARM_UP)), iter(range(jobs))
    await asyncio.gather(*(caller(enqueue, first) for _ in range(callers)))
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(caller(enqueue, left) for _ in range(callers)))
    return found(way, callers, jobs, began, cpu)


async def caller(enqueue: Enqueue, numbers: Iterator[int]) -> None:
    for n in numbers:
        await enqueue(n)


def blocking(target: Target, jobs: int) -> Run:
    with zq.App(f"http://127.0.0.1:{target.port}") as app:
        task = app.task(queue="bench", result_ttl=None)(nothing)
        for n in range(WARM_UP):
            task.enqueue_sync(n)
        began, cpu = time.perf_counter(), time.process_time()
        for n in range(jobs):
            task.enqueue_sync(n)
        return found(BLOCKING, 1, jobs, began, cpu)


def found(way: str, callers: int, jobs: int, began: float, cpu: float) -> Run:
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    return Run(way, callers, jobs / seconds, spent / jobs * 1e6)


def run_way(way: str, target: Target, callers: int, jobs: int) -> Run:
    if way == BLOCKING:
        return blocking(target, jobs)
    return run((by_http if way == HTTP else by_library)(target, callers, jobs))


def cases() -> Iterator[tuple[int, str]]:
    for callers in CALLERS:
        yield callers, HTTP
        yield callers, LIBRARY
        if callers == 1:
            yield callers, BLOCKING


def singles(lab: Lab, rounds: int, seconds: float, progress: Progress) -> list[Run]:
    runs = []
    for turn in range(rounds):
        for callers, way in cases():
            progress.show(f"round {turn + 1}/{rounds} {way}, {callers} callers")
            jobs = round(PACE[callers] * seconds)
            with lab.server("zq") as target:
                runs.append(in_own_process(run_way, way, target, callers, jobs))
    progress.clear()
    return runs


def singles_table(runs: list[Run]) -> Table:
    def of(callers: int, way: str) -> list[Run]:
        return [each for each in runs if (each.callers, each.way) == (callers, way)]

    lines = []
    for callers, way in cases():
        mine = of(callers, way)
        rates = [each.rate for each in mine]
        cells = [number(statistics.median(rates)), span(rates, 0)]
        cells.append(number(statistics.median(each.cpu_us for each in mine), 1))
        if way != HTTP:
            plain = of(callers, HTTP)
            ratios = [a.rate / b.rate for a, b in zip(mine, plain, strict=True)]
            cells += [ratio(ratios), span(ratios, 2), number(AIM, 1)]
        lines.append([str(callers), way, *cells, *[""] * (6 - len(cells))])
    return Table(
        ["callers", "by", "jobs/s", "low-high", "CPU µs/job", "of http", "low-high", "aim"], lines
    )
