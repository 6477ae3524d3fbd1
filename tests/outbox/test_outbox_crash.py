"""The outbox under SIGKILL: of the program that writes, of the relay, and of the server."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import cycle, islice
from pathlib import Path
from random import Random

from process.server import ServerProcess, clean_environment
from tiers import sizes

from bench.ports import free_port
from zq import outbox
from zq.client.app import App

from .conftest import Database

Process = asyncio.subprocess.Process
HERE = Path(__file__).parent

END_OF_OTHERS = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend'
"""


async def program(*words: str) -> Process:
    environment = clean_environment() | {"PYTHONPATH": str(HERE.parent)}
    return await asyncio.create_subprocess_exec(sys.executable, *words, env=environment)


async def killed(process: Process) -> None:
    process.kill()
    await process.wait()


async def grown(database: Database, marks: int) -> int:
    """How many rows are committed, as soon as there are more than these."""
    async with asyncio.timeout(60):
        while True:
            ((found,),) = await asyncio.to_thread(database.fetch, "SELECT count(*) FROM marks")
            if found > marks:
                return int(found)
            await asyncio.sleep(0.05)


async def numbers(app: App) -> list[int]:
    """The arguments of all jobs, in their order."""
    found: list[int] = []
    page = await app.backend.jobs(limit=2000)
    while page.jobs:
        found += [job.payload["args"][0] for job in page.jobs]
        if page.after is None:
            break
        page = await app.backend.jobs(after=page.after, limit=2000)
    return found


@sizes("kills", 3, 200)
async def test_each_committed_row_becomes_one_job_whatever_is_killed(
    database: Database, tmp_path: Path, kills: int
) -> None:
    seed = os.environ.get("CRASH_SEED") or str(time.time_ns())
    print(f"repeat with CRASH_SEED={seed}")
    rng = Random(seed)
    connection = database.connect()
    connection.execute("CREATE TABLE marks (n integer PRIMARY KEY)")
    connection.commit()
    connection.close()
    port = free_port()
    server = await ServerProcess.spawn(tmp_path / "zq", "--port", str(port))
    await server.listening()
    url = f"http://127.0.0.1:{port}"

    async def new_relay() -> Process:
        return await program(
            *("-m", "outbox.small_relay", "relay", "--url", url, "--database", database.url),
            *("--log-level", "error"),
        )

    async def new_writer() -> Process:
        return await program("-m", "outbox.writer", database.url)

    start: dict[str, Callable[[], Awaitable[Process]]] = {"relay": new_relay, "writer": new_writer}
    programs = {name: await begin() for name, begin in start.items()}
    try:
        marks = 0
        for victim in islice(cycle(rng.sample(["server", "relay", "writer"], 3)), kills):
            marks = await grown(database, marks)
            await asyncio.sleep(rng.uniform(0, 1))  # how far they have come is what varies
            if victim == "server":
                await server.kill()
                server = await ServerProcess.spawn(tmp_path / "zq", "--port", str(port))
                await server.listening()
            else:
                await killed(programs[victim])
                programs[victim] = await start[victim]()
        for each in programs.values():
            await killed(each)
        if database.kind == "postgresql":  # It may not have noticed yet, and would commit later.
            await asyncio.to_thread(database.fetch, END_OF_OTHERS)
        async with App(url) as app:
            await outbox.Relay(app, database.url).run_until_empty()
            found = await numbers(app)
    finally:
        for each in programs.values():
            if each.returncode is None:
                await killed(each)
        await server.kill()

    written = [row[0] for row in database.fetch("SELECT n FROM marks ORDER BY n")]
    assert len(written) > kills
    assert found == written
    assert database.left == 0
