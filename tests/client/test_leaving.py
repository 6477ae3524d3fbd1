"""Programs whose app stands in a module, and which close nothing: they leave nothing open."""

import asyncio
import sys
from pathlib import Path

import pytest
from process.server import clean_environment

from zq.testing import TestServer

APP = """\
import asyncio
import os
import threading

import zq

app = zq.App()


@app.task
def add(a: int, b: int) -> int:
    return a + b


async def enqueue() -> None:
    events = app.events(queue="default")
    listening = asyncio.ensure_future(anext(events))
    while not listening.done():
        await add.enqueue(1, 2)
    await events.aclose()

"""

PROGRAMS = {
    "coroutines": "asyncio.run(enqueue())",
    "two loops": "asyncio.run(enqueue())\nasyncio.run(enqueue())",
    "blocking": "add.enqueue_sync(1, 2)",
    "both": "add.enqueue_sync(1, 2)\nasyncio.run(enqueue())\nadd.enqueue_sync(1, 2)",
    "threads": """\
threads = [threading.Thread(target=asyncio.run, args=(enqueue(),)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
    "fork": """\
add.enqueue_sync(1, 2)
if child := os.fork():
    os.waitpid(child, 0)
add.enqueue_sync(1, 2)
""",
    "worker": "zq_worker = zq.Worker(app, burst=True)\nasyncio.run(zq_worker.run())",
    "embedded": 'app = zq.App("sqlite://:memory:")\napp.task(enqueue).enqueue_sync()',
}


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_program_that_closes_nothing_ends_without_a_warning(
    kind: str, zq_server: TestServer, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(APP + PROGRAMS[kind])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "always::ResourceWarning", "program.py"),
        cwd=tmp_path,
        env=clean_environment() | {"ZQ_URL": zq_server.url},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert (errors.decode(), process.returncode) == ("", 0)


async def test_an_event_loop_keeps_its_connections_while_others_come_and_go(
    zq_server: TestServer,
) -> None:
    async with zq_server.app() as app:

        @app.task
        def add(a: int, b: int) -> int:
            return a + b

        await add.enqueue(1, 2)
        transport = app.backend._transport  # type: ignore[attr-defined]
        mine = transport._here()
        await asyncio.to_thread(lambda: asyncio.run(add.enqueue(1, 2)))
        await add.enqueue(1, 2)
        assert transport._here() is mine
        assert not mine.closed
