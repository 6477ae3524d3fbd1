"""What a backup costs the clients of a server: `python -m bench.backup`.

A server with a large backlog serves producers and workers. In the middle of the load, the database
is copied in one of three ways, each on a server of its own:

slices  POST /backup: SQLite's backup by the connection that writes; no lock is held between slices
reader  SQLite's backup by another connection, in one snapshot
files   a copy of the file and then of the log; an open reader keeps the log from starting over
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from bench.actors import BULK, Meter, Producer, Worker, bulk_requests, job, percentiles
from bench.beside import Caller
from bench.children import running
from bench.http1 import Connection, TakeStream, post
from bench.load import Session, Target, Workers, fill, produce, run
from bench.report import Table, number
from bench.servers import LOG, ONE_PEER, UNLIMITED, end, wait_for_port

WAYS = ("slices", "reader", "files")
QUEUES = 10
SECONDS_BEFORE = 6.0
LOOK_EVERY = 0.05
PAYLOAD = "x" * 300
MIB = 2**20


@dataclass(frozen=True)
class Period:
    """The figures of one period: jobs a second, a lone caller's waits in ms, the log's MiB."""

    seconds: float
    enqueued: float
    acked: float
    p50: float
    p99: float
    worst: float
    wal_mib: float


@dataclass
class Place:
    root: Path
    target: Target
    admin: str


@contextlib.contextmanager
def server(parent: Path) -> Iterator[Place]:
    """A zq with an admin listener, on a new directory."""
    root = Path(tempfile.mkdtemp(prefix="zq-backup-", dir=parent))
    log = root.with_suffix(".log")
    flags = [*LOG, *ONE_PEER, *UNLIMITED, "--port", "0", "--admin-port", "0"]
    command = [sys.executable, "-m", "zq.cli", "serve", *flags, "--root-dir", str(root / "data")]
    try:
        with running(partial(start, command, log), end) as process:
            port = wait_for_port(process, log)
            lines = [json.loads(line)["fields"] for line in log.read_text().splitlines()]
            addr = next(line["addr"] for line in lines if line.get("api") == "admin")
            yield Place(root / "data", Target(port, process.pid), f"http://{addr}")
    finally:
        shutil.rmtree(root, ignore_errors=True)
        log.unlink(missing_ok=True)


def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


class Watch:
    """Reads meters, the waits of a lone caller and the size of the log over a period."""

    def __init__(self, place: Place, meters: list[Meter], caller: Caller) -> None:
        self._wal = place.root / "zq.db-wal"
        self._meters = meters
        self._caller = caller

    async def over(self, session: Session, done: Callable[[], bool]) -> Period:
        for meter in self._meters:
            meter.reset()
        self._caller.waits.clear()
        began, wal = time.perf_counter(), 0
        while not done():
            wal = max(wal, self._wal.stat().st_size)
            await session.pause(LOOK_EVERY)
        seconds = time.perf_counter() - began
        waits = self._caller.waits or [math.nan, math.nan]
        p50, p99 = percentiles(waits)
        enqueued, acked = (meter.jobs / seconds for meter in self._meters)
        worst = max(waits) * 1e3
        return Period(seconds, enqueued, acked, p50 * 1e3, p99 * 1e3, worst, wal / MIB)


@contextlib.asynccontextmanager
async def load(place: Place, jobs: int) -> AsyncIterator[tuple[Session, Watch]]:
    """A backlog that nobody takes, and producers, workers and a lone caller at full speed."""
    session = Session(place.target.port)
    try:
        large = [job(n, 1) | {"queue": "lies", "payload": {"p": PAYLOAD}} for n in range(BULK)]
        await fill(session, [post("/jobs/bulk", orjson.dumps({"jobs": large}))], jobs)
        bulk = Producer(Meter("bulk"), bulk_requests(QUEUES), BULK, allowance=0)
        await produce(session, bulk, 2)
        acked = Meter("ack")
        names = ",".join(f"queue-{n}" for n in range(QUEUES))
        shape = Workers(4, 1000, 250, 2)
        for _ in range(shape.count):
            await take_of(session, shape, acked, bulk.grant, names)
        bulk.grant(20 * BULK)
        caller = Caller([post("/jobs", orjson.dumps(job(n, QUEUES))) for n in range(1000)])
        caller.use(await session.connect(lambda: Connection(caller.on_reply)))
        await session.pause(2.0)
        yield session, Watch(place, [bulk.meter, acked], caller)
    finally:
        session.close()


async def take_of(
    session: Session, shape: Workers, acked: Meter, on_acked: Callable[[int], None], names: str
) -> None:
    worker = Worker(acked, shape.acks, on_acked)
    for _ in range(shape.posts):
        worker.use(await session.connect(lambda: Connection(worker.on_reply)))
    path = f"/jobs/take?prefetch={shape.prefetch}&queue={names}"
    await session.connect(lambda: TakeStream(path, worker.on_lines))


async def copy(way: str, place: Place, target: Path) -> None:
    """Copy the database of a server in one of the three ways."""
    if way != "slices":
        name = "copy_by_reader" if way == "reader" else "copy_files"
        program = f"from bench.backup import {name}; {name}({str(place.root)!r}, {str(target)!r})"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
        assert await process.wait() == 0
        return
    process = await asyncio.create_subprocess_exec(
        *("curl", "-sf", "-X", "POST", "-o", str(target), f"{place.admin}/backup")
    )
    assert await process.wait() == 0


def copy_by_reader(root: str, target: str) -> None:
    source = sqlite3.connect(f"{root}/zq.db", isolation_level=None)
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_master").fetchone()
    source.backup(sqlite3.connect(target), pages=4096)


def copy_files(root: str, target: str) -> None:
    source = sqlite3.connect(f"{root}/zq.db", isolation_level=None)
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_master").fetchone()
    for name in ("", "-wal"):
        subprocess.run(["cp", "--sparse=never", f"{root}/zq.db{name}", target + name], check=True)
    source.close()


async def compare(way: str, place: Place, jobs: int, target: Path) -> tuple[Period, Period, int]:
    async with load(place, jobs) as (session, watch):
        until = time.perf_counter() + SECONDS_BEFORE
        before = await watch.over(session, lambda: time.perf_counter() > until)
        size = (place.root / "zq.db").stat().st_size
        copying = asyncio.create_task(copy(way, place, target))
        during = await watch.over(session, copying.done)
        await copying
        return before, during, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=250_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    header = ["way", "MiB", "seconds", "enqueues", "acks", "p50 ms", "p99", "worst", "log MiB"]
    lines = []
    for _ in range(given.rounds):
        for way in given.ways:
            folder = tempfile.TemporaryDirectory(dir=given.directory)
            with folder as name, server(given.directory) as place:
                target = Path(name) / "copy"
                before, during, size = run(compare(way, place, given.jobs, target))
            lines.append(
                [
                    way,
                    number(size / MIB),
                    number(during.seconds, 1),
                    f"{number(during.enqueued / before.enqueued, 2)} of {number(before.enqueued)}",
                    f"{number(during.acked / before.acked, 2)} of {number(before.acked)}",
                    *(
                        f"{number(a, 1)} → {number(b, 1)}"
                        for a, b in (
                            (before.p50, during.p50),
                            (before.p99, during.p99),
                            (before.worst, during.worst),
                            (before.wal_mib, during.wal_mib),
                        )
                    ),
                ]
            )
    print(Table(header, lines).markdown())


if __name__ == "__main__":
    main()
