"""Producer, relay and server are killed at every point at which they can be amid a job.

Each kill is a SIGKILL by the program itself, at a point that has a name, so no time decides what is
tested. Between two kills hours pass on the clocks of all programs.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from crash.disk import compile_library
from crash.test_time import WallClock
from process.server import SCRIPT, ServerProcess, clean_environment

from bench.ports import free_port
from zq import outbox
from zq.client.app import App
from zq.client.values import JobQuery

from .conftest import Database
from .mortal import PRODUCER, RELAY, SERVER

HERE = Path(__file__).parent
DAYS = 60
POINTS = [*RELAY, *PRODUCER, *SERVER]
REFUSED = """INSERT INTO zq_outbox (document) VALUES ('{"queue":"a,b","type":"t","payload":1}')"""
TAKES_OVER = ("refused", "takes over", "taken over", "epoch")
"""Words of the points that a relay comes to at a row that the server refuses."""


@dataclass
class Plant:
    """A database with an outbox, a file of jobs, and the server for both."""

    database: Database
    root: Path
    clock: WallClock
    rng: Random
    port: int = field(default_factory=free_port)
    rows: int = 0
    lines: int = 0
    refused: int = 0
    killed: Counter[str] = field(default_factory=Counter)

    async def start(self, *words: str, die_at: str | None = None) -> asyncio.subprocess.Process:
        environment = (
            clean_environment() | self.clock.environment | {"PYTHONPATH": str(HERE.parent)}
        )
        if die_at is not None:
            environment["DIE_AT"] = die_at
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "outbox.mortal", *words),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def serve(self, die_at: str | None = None) -> ServerProcess:
        flags = ("--root-dir", str(self.root / "zq"), "--port", str(self.port))
        return await ServerProcess(await self.start(*SCRIPT, *flags, die_at=die_at)).listening()

    def write(self, *, with_a_bad_row: bool) -> None:
        """Commit rows, and add lines to the file."""
        app = App("http://127.0.0.1:1")

        @app.task(queue="rows")
        def mark(n: int) -> None: ...

        grouped = mark.options(group="g")
        connection = self.database.connect()
        for part in range(2):
            more = self.rng.randint(10, 15)
            calls = [grouped.args(n) for n in range(self.rows, self.rows + more)]
            outbox.enqueue_many(connection, grouped, calls)
            self.rows += more
            if with_a_bad_row and part == 0:
                connection.execute(REFUSED)
                self.refused += 1
        connection.commit()
        connection.close()
        with (self.root / "lines").open("a") as file:
            for _ in range(3):
                self.lines += 1
                file.write(f'{{"queue":"lines","type":"t","payload":{self.lines}}}\n')

    async def relay(self, die_at: str | None = None) -> int:
        return await self.run("relay", "--burst", "--database", self.database.url, die_at=die_at)

    async def push(self, die_at: str | None = None) -> int:
        file = str(self.root / "lines")
        return await self.run("push", "--file", file, "--producer", "lines", die_at=die_at)

    async def run(self, *words: str, die_at: str | None = None) -> int:
        url = f"http://127.0.0.1:{self.port}"
        process = await self.start(*words, "--url", url, die_at=die_at)
        await process.communicate()
        assert process.returncode is not None
        return process.returncode

    async def kill(self, point: str, server: ServerProcess) -> ServerProcess:
        """Have a program come to the point. Return the server that runs then."""
        self.write(with_a_bad_row=any(words in point for words in TAKES_OVER))
        self.killed[point] += 1
        if point in RELAY:
            times = self.rng.randint(1, 2) if "rows" in point else 1
            assert await self.relay(f"{point}:{times}") == -signal.SIGKILL, point
        elif point in PRODUCER:
            assert await self.push(f"{point}:1") == -signal.SIGKILL, point
        else:
            await server.kill()
            server = await self.serve(f"{point}:{self.rng.randint(1, 3)}")
            ends = await asyncio.gather(self.relay(), self.push(), server.exited())
            assert ends[2] == -signal.SIGKILL, point
            server = await self.serve()
        return server


@pytest.fixture(scope="module")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("clock"), "clock")


def points(kills: int, rng: Random) -> Sequence[str]:
    """Every point once, and then again."""
    return list(islice(cycle(rng.sample(POINTS, len(POINTS))), kills))


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("sqlite", len(POINTS)),
        pytest.param("sqlite", 300, marks=pytest.mark.long),
        pytest.param("postgresql", 300, marks=pytest.mark.long),
    ],
)
async def test_each_job_is_stored_once_whatever_is_killed_and_however_late_it_is_repeated(
    database: Database, tmp_path: Path, clock_library: Path, kills: int
) -> None:
    seed = os.environ.get("CRASH_SEED") or os.urandom(4).hex()
    kills = int(os.environ.get("CRASH_KILLS", kills))
    print(f"repeat with CRASH_SEED={seed}")
    rng = Random(seed)
    plant = Plant(database, tmp_path, WallClock(clock_library, tmp_path / "ahead"), rng)
    server = await plant.serve()
    try:
        for point in points(kills, rng):
            server = await plant.kill(point, server)
            plant.clock.step(DAYS * 86_400_000 // kills)
        assert (await plant.relay(), await plant.push()) == (0, 0)
        async with App(f"http://127.0.0.1:{plant.port}") as app:
            rows = [job["args"][0] for job in await payloads(app, "rows")]
            assert rows == list(range(plant.rows))
            assert await payloads(app, "lines") == list(range(1, plant.lines + 1))
    finally:
        await server.kill()
    assert database.left == plant.refused
    assert set(plant.killed) == set(POINTS)


async def payloads(app: App, queue: str) -> list[Any]:
    found: list[Any] = []
    after = None
    for _ in count():
        page = await app.backend.jobs(JobQuery(queues=(queue,)), after=after, limit=1000)
        found += [job.payload for job in page.jobs]
        after = page.after
        if after is None:
            break
    return found
