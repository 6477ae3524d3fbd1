"""More than a server was made for, and whether those who behave notice.

In each scenario a bystander acknowledges jobs one by one, before and during the overload: every one
of its acknowledgements must get through. The same code runs small in CI and large in the long run.
"""

import asyncio
import json
import sqlite3
import statistics
import time
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.client import Client, new_job
from conformance.raw import RawConnection
from process.server import ServerProcess
from process.worker import Worker

SAMPLES = 300
"""Acknowledgements of the bystander before the overload, and at least so many during it."""

STALLED = 10
"""One worker in so many stops reading."""

JOBS_EACH = 10


@dataclass
class Report:
    """What a scenario found. Times of one acknowledgement in ms, memory in MiB."""

    scenario: str
    calm_p99: float
    loaded_p99: float
    calm_rss: float
    peak_rss: float
    counts: Counter[str] = field(default_factory=Counter)


class Bystander:
    """Holds a stream of jobs that are there already, and acknowledges them one after another."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream: Any = None

    async def prepare(self) -> None:
        for _ in range(20):
            await self._client.enqueue_many(1_000, queue="bystander", payload="x")
        self._stream = await self._client.take(prefetch=20, queue="bystander")

    async def acknowledge(self) -> float:
        """One acknowledgement; how many ms it took."""
        job = await self._stream.job()
        began = time.perf_counter()
        await self._client.succeed(job["id"])
        return (time.perf_counter() - began) * 1000

    async def samples(self, count: int) -> list[float]:
        return [await self.acknowledge() for _ in range(count)]

    async def during(self, overload: asyncio.Task[None]) -> list[float]:
        """Acknowledge for as long as the overload lasts, and often enough to rank."""
        found: list[float] = []
        while not overload.done() or len(found) < SAMPLES:
            found.append(await self.acknowledge())
        await overload
        return found


def p99(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=100)[98]


def rss_mb(server: ServerProcess, *, peak: bool = False) -> float:
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    name = "VmHWM:" if peak else "VmRSS:"
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


async def judged(
    scenario: str, server: ServerProcess, client: Client, overload: Any, counts: Counter[str]
) -> Report:
    """Run an overload (a coroutine) beside a bystander."""
    bystander = Bystander(client)
    await bystander.prepare()
    calm = await bystander.samples(SAMPLES)
    calm_rss = rss_mb(server)
    loaded = await bystander.during(asyncio.create_task(overload))
    counts["acknowledged by the bystander"] += len(loaded)
    return Report(scenario, p99(calm), p99(loaded), calm_rss, rss_mb(server, peak=True), counts)


async def producers(server: ServerProcess, client: Client, number: int, requests: int) -> Report:
    """So many producers post bulks of 100 jobs without a pause, and count what becomes of them."""
    counts: Counter[str] = Counter()
    body = json.dumps({"jobs": [new_job(payload="x" * 100)] * 100}).encode()
    head = "POST /jobs/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def produce() -> None:
        async with await RawConnection.open(server.port) as connection:
            for _ in range(requests):
                await connection.send(request)
                reply = await connection.reply()
                counts[str(reply.status)] += 1

    async def overload() -> None:
        await asyncio.gather(*(produce() for _ in range(number)))

    report = await judged(f"{number} producers", server, client, overload(), counts)
    counts["stored"] = await client.count(queue="default")
    return report


async def workers(server: ServerProcess, client: Client, number: int) -> Report:
    """So many workers, one in `STALLED` of which reads nothing, share large jobs."""
    counts: Counter[str] = Counter()
    jobs = number * JOBS_EACH

    async def work(queue: asyncio.Queue[str]) -> None:
        async with await RawConnection.open(server.port) as connection:
            worker = Worker(connection)
            await worker.take(prefetch=5, queue="shared")
            while True:
                frame = await worker.frame()
                if frame is not None:
                    queue.put_nowait(frame["id"])

    async def overload() -> None:
        delivered: asyncio.Queue[str] = asyncio.Queue()
        async with AsyncExitStack() as idle, server.client() as other:
            for _ in range(number // STALLED):
                connection = await idle.enter_async_context(
                    await RawConnection.open(server.port, receive_buffer=4096)
                )
                await Worker(connection).take(prefetch=5, queue="shared")
            readers = [
                asyncio.create_task(work(delivered)) for _ in range(number - number // STALLED)
            ]
            for _ in range(0, jobs, 50):
                await other.enqueue_many(50, queue="shared", payload="x" * 20_000)
            while counts["done"] < jobs - number // STALLED * 5:
                await other.succeed(await delivered.get())
                counts["done"] += 1
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)

    return await judged(f"{number} workers", server, client, overload(), counts)


async def silent(server: ServerProcess, client: Client, number: int) -> Report:
    """So many connections are opened, and nothing is ever said on them."""
    counts: Counter[str] = Counter()

    async def overload() -> None:
        async with AsyncExitStack() as open_ones:
            for _ in range(number):
                await open_ones.enter_async_context(await RawConnection.open(server.port))
                counts["opened"] += 1

    return await judged(f"{number} silent connections", server, client, overload(), counts)


async def pinned(server: ServerProcess, client: Client, file: Path, mib: int) -> Report:
    """Another process reads in one long transaction while so many MiB are to be stored."""
    counts: Counter[str] = Counter()

    async def overload() -> None:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM jobs").fetchone()
            for _ in range(mib):
                jobs = {"jobs": [new_job(queue="pinned", payload="x" * 100_000)] * 10}
                counts[str((await client.post("/jobs/bulk", jobs)).status)] += 1
            wal = file.with_name(f"{file.name}-wal").stat().st_size
            counts["WAL, MiB"] = wal // 2**20

    return await judged(f"a reader that pins {mib} MiB", server, client, overload(), counts)
