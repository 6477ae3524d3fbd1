"""More load than a server was made for, and its effect on a well-behaved client.

In each scenario a bystander acknowledges jobs one by one: on a calm server, beside as much as is
usual there, and beside the overload. Every one of its acknowledgements must get through. The same
code runs small in CI and large in the long run, where a process of its own makes the overload.
"""

import asyncio
import json
import sqlite3
import statistics
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from conformance.client import JSON, Client, new_job
from conformance.raw import RawConnection
from conformance.streams import PATIENCE_S, pause
from process.server import RemoteSite, ServerProcess
from process.worker import Worker

Counts = Counter[str]
Ask = Callable[[], Coroutine[Any, Any, Counts]]
"""What is asked of a server, and what came of it. It goes to another process."""

SAMPLES = 300
"""Acknowledgements of the bystander before the overload."""

JOBS = 50_000
"""That the bystander finds: more than it can acknowledge."""

BRIEF_SAMPLES, BRIEF_JOBS, BRIEF_PAUSE_S = 20, 5_000, 0.01
"""The sizes where times are not what is looked at: it then pauses between acknowledgements."""

FEW = 4
"""Producers that keep a server busy, and nobody else waiting."""

WINDOW = 5
SILENCE_S = 2.0

STALLED = 10
"""One worker in so many stops reading."""

JOBS_EACH = 10


class Wait(NamedTuple):
    """What one acknowledgement took, in ms.

    `work` is the processor time of the server's event loop meanwhile: what had to be done before
    the answer, its own work included. A machine that does other things as well lengthens `wall` and
    not `work`.
    """

    wall: float
    work: float


@dataclass
class Report:
    """What a scenario found: p99 of acknowledgements, memory in MiB."""

    scenario: str
    calm: Wait
    usual: Wait | None
    """Beside the same work, asked for by those who behave; None where there is no such thing."""
    loaded: Wait
    calm_rss: float
    peak_rss: float
    counts: Counts


class Bystander:
    """Holds a stream of jobs that are there already, and acknowledges them one after another."""

    def __init__(self, server: ServerProcess, client: Client, *, brief: bool) -> None:
        self._server = server
        self._client = client
        self._jobs = BRIEF_JOBS if brief else JOBS
        self._is_brief = brief
        self._stream: Any = None

    async def prepare(self) -> None:
        for _ in range(self._jobs // 1_000):
            await self._client.enqueue_many(1_000, queue="bystander", payload="x")
        self._stream = await self._client.take(prefetch=20, queue="bystander")

    async def acknowledge(self) -> Wait:
        """One acknowledgement, and what it took."""
        if self._is_brief:
            await asyncio.sleep(BRIEF_PAUSE_S)
        job = await self._stream.job()
        worked, began = loop_ms(self._server), time.perf_counter()
        await self._client.succeed(job["id"])
        wall = (time.perf_counter() - began) * 1000
        return Wait(wall, loop_ms(self._server) - worked)

    async def samples(self, count: int) -> list[Wait]:
        return [await self.acknowledge() for _ in range(count)]

    async def beside(self, ask: Ask) -> tuple[list[Wait], Counts]:
        """Acknowledge for as long as something else is asked for; what came of that.

        Another process asks, or in brief this one.
        """
        found: list[Wait] = []
        with ExitStack() as stack:
            asking: asyncio.Future[Counts]
            if self._is_brief:
                asking = asyncio.create_task(ask())
            else:
                spawning = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
                pool = stack.enter_context(spawning)
                asking = asyncio.get_running_loop().run_in_executor(pool, _run, ask)
            while not asking.done():
                found.append(await self.acknowledge())
            return found, await asking


def p99(samples: list[Wait]) -> Wait:
    wall, work = (statistics.quantiles(times, n=100)[98] for times in zip(*samples, strict=True))
    return Wait(wall, work)


def loop_ms(server: ServerProcess) -> float:
    """Processor time of the server's main thread, which is its event loop."""
    return int(Path(f"/proc/{server.pid}/task/{server.pid}/schedstat").read_text().split()[0]) / 1e6


def rss_mb(server: ServerProcess, *, peak: bool = False) -> float:
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    name = "VmHWM:" if peak else "VmRSS:"
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


async def judged(
    scenario: str,
    server: ServerProcess,
    client: Client,
    overload: Ask,
    usual: Ask | None = None,
    *,
    brief: bool,
) -> Report:
    """Ask what is usual, then the overload, beside a bystander. In brief, only the overload."""
    bystander = Bystander(server, client, brief=brief)
    await bystander.prepare()
    samples = await bystander.samples(BRIEF_SAMPLES if brief else SAMPLES)
    calm, calm_rss = p99(samples), rss_mb(server)
    before = None if usual is None or brief else p99((await bystander.beside(usual))[0])
    loaded, counts = await bystander.beside(overload)
    counts["acknowledged by the bystander"] += len(loaded)
    peak = rss_mb(server, peak=True)
    return Report(scenario, calm, before, p99(loaded), calm_rss, peak, counts)


def _run(ask: Ask) -> Counts:
    return asyncio.run(ask())


async def producers(
    server: ServerProcess, client: Client, number: int, requests: int, *, brief: bool = False
) -> Report:
    """So many producers post bulks of 100 jobs without a pause, and count what becomes of them.

    It is usual that a few of them send as many.
    """
    flood = partial(_produce, server.port, "flood", number, requests)
    usual = partial(_produce, server.port, "usual", FEW, number * requests // FEW)
    name = f"{number} producers"
    report = await judged(name, server, client, flood, usual, brief=brief)
    report.counts["stored"] = await client.count(queue="flood")
    return report


async def _produce(port: int, queue: str, number: int, requests: int) -> Counts:
    counts: Counts = Counter()
    body = json.dumps({"jobs": [new_job(queue=queue, payload="x" * 100)] * 100}).encode()
    head = "POST /jobs/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def produce() -> None:
        async with await RawConnection.open(port) as connection:
            for _ in range(requests):
                await connection.send(request)
                counts[str((await connection.reply()).status)] += 1

    await asyncio.gather(*(produce() for _ in range(number)))
    return counts


async def workers(
    server: ServerProcess, client: Client, number: int, *, brief: bool = False
) -> Report:
    """So many workers, one in `STALLED` of which reads nothing, share large jobs.

    It is usual that all of them read.
    """
    some_deaf = partial(_work, server.port, number, number // STALLED)
    usual = partial(_work, server.port, number, 0)
    return await judged(f"{number} workers", server, client, some_deaf, usual, brief=brief)


async def _work(port: int, number: int, stalled: int) -> Counts:
    counts: Counts = Counter()
    jobs = number * JOBS_EACH
    delivered: asyncio.Queue[str] = asyncio.Queue()

    async def work() -> None:
        async with await RawConnection.open(port) as connection:
            worker = Worker(connection)
            await worker.take(prefetch=WINDOW, queue="shared")
            while True:
                frame = await worker.frame()
                if frame is not None:
                    delivered.put_nowait(frame["id"])

    async with AsyncExitStack() as idle, Client(RemoteSite(port), JSON) as client:
        for _ in range(stalled):
            connection = await idle.enter_async_context(
                await RawConnection.open(port, receive_buffer=4096)
            )
            await Worker(connection).take(prefetch=WINDOW, queue="shared")
        readers = [asyncio.create_task(work()) for _ in range(number - stalled)]
        for _ in range(0, jobs, 50):
            await client.enqueue_many(50, queue="shared", payload="x" * 20_000)
        while counts["done"] < jobs - stalled * WINDOW:
            await client.succeed(await delivered.get())
            counts["done"] += 1
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
    return counts


async def silent(
    server: ServerProcess, client: Client, number: int, *, brief: bool = False
) -> Report:
    """So many connections are opened, and nothing is ever said on them."""
    name = f"{number} silent connections"
    opened = partial(_open, server.port, number)
    return await judged(name, server, client, opened, brief=brief)


async def _open(port: int, number: int) -> Counts:
    async with AsyncExitStack() as connections:
        for _ in range(number):
            await connections.enter_async_context(await RawConnection.open(port))
        await asyncio.sleep(SILENCE_S)
    return Counter(opened=number)


async def pinned(
    server: ServerProcess, client: Client, file: Path, mib: int, *, brief: bool = False
) -> Report:
    """Another process reads in one long transaction while so many MiB are to be stored.

    It is usual that nobody does.
    """
    name = f"a reader that pins {mib} MiB"
    pin, usual = partial(_pin, server.port, file, mib), partial(_store, server.port, mib)
    return await judged(name, server, client, pin, usual, brief=brief)


async def _pin(port: int, file: Path, mib: int) -> Counts:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchone()
        counts = await _store(port, mib)
        counts["MiB of WAL"] = file.with_name(f"{file.name}-wal").stat().st_size // 2**20
    async with Client(RemoteSite(port), JSON) as client, asyncio.timeout(PATIENCE_S):
        while (await client.post("/jobs/bulk", _MIB)).status != 201:
            await pause()
    counts["stored afterwards"] += 10
    return counts


async def _store(port: int, mib: int) -> Counts:
    counts: Counts = Counter()
    async with Client(RemoteSite(port), JSON) as client:
        for _ in range(mib):
            counts[str((await client.post("/jobs/bulk", _MIB)).status)] += 1
    return counts


_MIB = {"jobs": [new_job(queue="pinned", payload="x" * 100_000)] * 10}
