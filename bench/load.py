"""One load on one server. It runs in a process of its own and is described by plain data."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from typing import Any, ParamSpec, TypeVar

from bench import proc
from bench.actors import (
    BULK,
    Measure,
    Meter,
    NumberedProducer,
    Producer,
    Worker,
    bulk_requests,
    single_requests,
)
from bench.http1 import Client, Connection, LoadError, PatientConnection, TakeStream
from bench.http2_wire import Http2Connection, Lane
from bench.loops import best_loop, loop_factory

FILL_CONNECTIONS = 4
FILL_SECONDS = 600.0
LOOK_EVERY = 0.02
FIRST_ANSWER_S = 60.0
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=Client)


@dataclass(frozen=True)
class Workers:
    """How jobs are taken: `count` streams, each with `posts` connections that acknowledge.

    An acknowledgement carries `acks` ids; with one id it is `POST /jobs/{id}/success`. With
    `http2` each stream's `posts` share one connection.
    """

    count: int
    prefetch: int
    acks: int
    posts: int
    http2: bool = False


@dataclass(frozen=True)
class Target:
    """A running server."""

    port: int
    pid: int
    database: int = 0
    """The process of its database; 0 if it has its own files."""


@dataclass(frozen=True)
class LoadSpec:
    """The load on a server: connections that enqueue, and workers that take.

    Jobs count after `warm_up` seconds, for `seconds` or until the backlog runs out. The backlog is
    stored before the clock starts; without one, the server has jobs of its own. With `top_up` the
    bulk connections enqueue as many jobs as were acknowledged, so the backlog keeps its depth. With
    `groups` the jobs in bulk belong to so many FIFO groups, and to a few hot ones. With `folds`
    single jobs fold into one host at a time, which takes in so many. With `numbered` each bulk
    connection is a producer that numbers its jobs. With `keys` or `budgets` the jobs in bulk have
    so many fair keys in turn, or draw from so many budgets.
    """

    queues: int
    seconds: float
    warm_up: float
    bulk: int = 0
    single: int = 0
    workers: Workers | None = None
    backlog: int = 0
    top_up: bool = False
    groups: int = 0
    folds: int = 0
    numbered: bool = False
    keys: int = 0
    budgets: int = 0


@dataclass(frozen=True)
class LoadResult:
    """CPU in processor seconds a second of the measured time, of the server, its database, and the
    load."""

    measures: list[Measure]
    server_cpu: float
    load_cpu: float
    peak_rss_mb: float
    database_cpu: float = 0.0


class Session:
    """The connections of one load, and the first error on any of them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: list[Client] = []
        self._loop = asyncio.get_running_loop()
        self._trouble: asyncio.Future[None] = self._loop.create_future()
        self._loop.set_exception_handler(self._on_trouble)

    def _on_trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self._trouble.done():
            error = context.get("exception") or LoadError(context["message"])
            self._trouble.set_exception(error)

    async def connect(self, make: Callable[[], C]) -> C:
        _, client = await self._loop.create_connection(make, "127.0.0.1", self._port)
        self._clients.append(client)
        return client

    async def pause(self, seconds: float) -> None:
        """Let the load run. Raises the first error that a connection had meanwhile."""
        await asyncio.wait({self._trouble}, timeout=seconds)
        if self._trouble.done():
            self._trouble.result()

    async def until(self, reached: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline:
                raise LoadError(f"the load did not get on within {seconds:g} s")
            await self.pause(LOOK_EVERY)

    async def lasts(self, seconds: float, reached: Callable[[], bool]) -> float:
        """Let the load run for so long, and on until there is something to measure.

        Returns how long that was: a busy machine may need longer for the first answer.
        """
        began = time.perf_counter()
        await self.pause(seconds)
        await self.until(reached, FIRST_ANSWER_S)
        return time.perf_counter() - began

    def close(self) -> None:
        for client in self._clients:
            client.close()


def apart() -> BaseContext:
    """How processes of a load begin: forked from one that has imported this module, and runs
    nothing."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def in_own_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run the load in a process of its own, so that it does not slow down this one."""
    with ProcessPoolExecutor(1, mp_context=apart()) as pool:
        return pool.submit(function, *args, **kwargs).result()


def run_load(target: Target, spec: LoadSpec) -> LoadResult:
    """Drive one load. Raises LoadError at the first answer that is not a success."""
    return run(load(target, spec))


def run(main: Coroutine[Any, Any, R]) -> R:
    """Run the load on the cheapest event loop, which leaves the server most of the machine."""
    with asyncio.Runner(loop_factory=loop_factory(best_loop())) as runner:
        return runner.run(main)


async def load(target: Target, spec: LoadSpec) -> LoadResult:
    session = Session(target.port)
    try:
        bulks = bulk_requests(spec.queues, spec.groups, spec.keys, spec.budgets)
        await fill(session, bulks, spec.backlog)
        meters = await start(session, spec, bulks)
        return await measure(session, target, spec, meters)
    finally:
        session.close()


async def fill(session: Session, bulks: list[bytes], jobs: int) -> None:
    """Store a backlog of at least `jobs`. A server that is too busy gets the time that it needs."""
    filler = Producer(Meter("fill"), bulks, BULK, allowance=math.ceil(jobs / BULK) * BULK)
    await produce(session, filler, FILL_CONNECTIONS, PatientConnection)
    await session.until(lambda: filler.meter.jobs >= jobs, FILL_SECONDS)


async def start(session: Session, spec: LoadSpec, bulks: list[bytes]) -> list[Meter]:
    """Start the load that the spec describes. Return the meters of the jobs that count."""
    counted: list[Meter] = []
    kind = NumberedProducer if spec.numbered else Producer
    bulk = kind(Meter("bulk"), bulks, BULK, allowance=0 if spec.top_up else math.inf)
    if spec.bulk:
        await produce(session, bulk, spec.bulk)
        counted += [] if spec.top_up else [bulk.meter]
    if spec.single:
        single = Producer(
            Meter("single"), single_requests(spec.queues, spec.folds), 1, allowance=math.inf
        )
        await produce(session, single, spec.single)
        counted.append(single.meter)
    if spec.workers:
        acked = Meter("ack")
        for _ in range(spec.workers.count):
            await take(session, spec.workers, acked, bulk.grant if spec.top_up else None)
        counted.append(acked)
    return counted


async def produce(
    session: Session, producer: Producer, connections: int, kind: type[Connection] = Connection
) -> None:
    for _ in range(connections):
        producer.use(await session.connect(lambda: kind(producer.on_reply)))


async def take(
    session: Session, shape: Workers, acked: Meter, on_acked: Callable[[int], None] | None
) -> None:
    worker = Worker(acked, shape.acks, on_acked)
    if shape.http2:
        shared = await session.connect(Http2Connection)
        for _ in range(shape.posts):
            worker.use(Lane(shared, worker.on_reply))
    else:
        for _ in range(shape.posts):
            worker.use(await session.connect(lambda: Connection(worker.on_reply)))
    path = f"/jobs/take?prefetch={shape.prefetch}"
    await session.connect(lambda: TakeStream(path, worker.on_lines))


async def measure(
    session: Session, target: Target, spec: LoadSpec, meters: list[Meter]
) -> LoadResult:
    await session.pause(spec.warm_up)
    left = backlog_left(spec, meters)
    for meter in meters:
        meter.reset()
    began = time.perf_counter()
    server_cpu, load_cpu = proc.cpu_seconds(target.pid), time.process_time()
    database_cpu = target.database and proc.cpu_seconds(target.database)
    while (elapsed := time.perf_counter() - began) < spec.seconds:
        if sum(meter.jobs for meter in meters) >= left:
            break
        await session.pause(LOOK_EVERY)

    def is_measurable() -> bool:
        # The kernel counts processor time in hundredths of a second.
        return all(meter.jobs for meter in meters) and proc.cpu_seconds(target.pid) > server_cpu

    elapsed += await session.lasts(0, is_measurable)
    return LoadResult(
        [meter.read(elapsed) for meter in meters],
        (proc.cpu_seconds(target.pid) - server_cpu) / elapsed,
        (time.process_time() - load_cpu) / elapsed,
        proc.peak_rss_mb(target.pid),
        target.database and (proc.cpu_seconds(target.database) - database_cpu) / elapsed,
    )


def backlog_left(spec: LoadSpec, meters: list[Meter]) -> float:
    """Jobs that can still be acknowledged before the workers run dry."""
    if spec.workers is None or spec.top_up or not spec.backlog:
        return math.inf
    # At the end a worker keeps less than one full acknowledgement.
    left = spec.backlog - meters[-1].jobs - spec.workers.count * spec.workers.acks
    if left <= 0:
        raise LoadError("the backlog was gone before the warm-up ended")
    return left
