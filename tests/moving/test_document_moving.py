"""The pages about moving here: their programs are run, and what waits is moved, as printed."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conformance.streams import PATIENCE_S
from documents import SERVER, code, commands, started_by
from process.server import ServerProcess, clean_environment, running

import zq
from zq.client.values import JobQuery
from zq.model.ids import timestamp_ms

CLIENTS = Path(__file__).parents[1] / "clients"
"""Where the packages for Node are."""

WORK = "zq worker letters_zq:app --burst --log-level warn"


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServerProcess]:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    (tmp_path / "letters_zq.py").write_text(code("letters_zq.py"))
    async with running(tmp_path / "data") as server:
        yield server


async def run(directory: Path, server: ServerProcess, command: str, **environment: str) -> str:
    """What a command prints, which has to end well."""
    process = await asyncio.create_subprocess_exec(
        *started_by(command),
        cwd=directory,
        env=clean_environment() | {"ZQ_URL": at(server)} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate()
    assert process.returncode == 0, (output + errors).decode()
    return output.decode()


def at(server: ServerProcess) -> str:
    return f"http://127.0.0.1:{server.port}"


def produce(module: str) -> str:
    return f'{sys.executable} -c "import {module}; {module}.produce()"'


async def both_letters(server: ServerProcess, directory: Path) -> None:
    """One letter is executed by the program for zq, and the other one waits for its hour."""
    async with zq.App(at(server)) as app:
        now, later = (await app.backend.jobs()).jobs
        assert (now.status, later.status) == ("ready", "scheduled")
        assert later.ready_at > timestamp_ms(later.id) + 3_500_000
        assert (now.retry_limit, later.payload["kwargs"]) == (2, {"subject": "Later"})
        await run(directory, server, WORK)
        left = [job.status for job in (await app.backend.jobs()).jobs]
        assert [status for status in left if status != "completed"] == ["scheduled"]


async def test_the_program_of_zq_enqueues_both_letters(
    server: ServerProcess, tmp_path: Path
) -> None:
    await run(tmp_path, server, produce("letters_zq"))
    await both_letters(server, tmp_path)


async def test_what_waits_in_huey_is_moved(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "letters_huey.py").write_text(code("letters_huey.py"))
    (move,) = commands("moving from huey")
    await run(tmp_path, server, produce("letters_huey"))
    for _ in range(2):
        await run(tmp_path, server, move)
    await both_letters(server, tmp_path)


async def test_what_waits_in_rq_is_moved(server: ServerProcess, tmp_path: Path, redis: str) -> None:
    (tmp_path / "letters_rq.py").write_text(code("letters_rq.py"))
    (move,) = commands("moving from rq")
    await run(tmp_path, server, produce("letters_rq"), REDIS_URL=redis)
    for _ in range(2):
        await run(tmp_path, server, move, REDIS_URL=redis)
    await both_letters(server, tmp_path)


async def test_what_waits_in_a_zizq_is_moved(server: ServerProcess, tmp_path: Path) -> None:
    store, look = commands("moving: the same program")
    (move,) = commands("moving from zizq")
    async with running(tmp_path / "new") as new:
        await run(tmp_path, server, store.replace(SERVER, at(server)))
        move = move.replace(SERVER, at(server)).replace("http://127.0.0.1:7891", at(new))
        await run(tmp_path, server, move)
        (letter,) = json.loads(await run(tmp_path, new, look.replace(SERVER, at(new))))["jobs"]
    assert (letter["payload"], letter["retry_limit"]) == ({"to": "ann@example.org"}, 2)


async def the_first_letter_is_sent(directory: Path, name: str, **environment: str) -> None:
    """A program for Node enqueues both letters, and its worker sends the one that is due."""
    node = shutil.which("node")
    assert node, "programs for Node are run: apt-get install nodejs"
    (directory / name).write_text(code(name))
    process = await asyncio.create_subprocess_exec(
        node, directory / name, env=os.environ | environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await process.stdout.readline() == b"sent to ann@example.org\n"
    finally:
        process.kill()
        await process.communicate()


async def test_what_waits_in_bullmq_is_moved(
    server: ServerProcess, tmp_path: Path, redis: str
) -> None:
    (tmp_path / "node_modules").symlink_to(CLIENTS / "node_modules")
    (tmp_path / "waiting_bullmq.mjs").write_text(code("waiting_bullmq.mjs"))
    (move,) = commands("moving from bullmq")
    await the_first_letter_is_sent(tmp_path, "letters_bullmq.mjs", REDIS_URL=redis)
    for _ in range(2):
        await run(tmp_path, server, move, REDIS_URL=redis)
    async with zq.App(at(server)) as app:
        (later,) = (await app.backend.jobs(JobQuery(queues=("letters",), types=("send",)))).jobs
    assert (later.payload, later.retry_limit) == ({"to": "bob@example.org"}, 2)
    assert later.ready_at > timestamp_ms(later.id) + 3_500_000


async def test_the_program_for_node_works(server: ServerProcess, tmp_path: Path) -> None:
    await the_first_letter_is_sent(tmp_path, "letters.mjs", ZQ_URL=at(server))
    async with zq.App(at(server)) as app:
        assert [job.status for job in (await app.backend.jobs()).jobs][-1] == "scheduled"
