"""The Python programs of the documents, written and run as printed."""

import asyncio
import json
import re
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from conformance.streams import PATIENCE_S
from documents import SERVER, code, commands, region, started_by

import zq
from bench.ports import free_port
from zq.client.options import CHECKS

from .server import ServerProcess, clean_environment, running


@asynccontextmanager
async def started(directory: Path, words: list[str], url: str) -> AsyncIterator[Process]:
    """A program that has said its first word."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        cwd=directory,
        env=clean_environment() | {"ZQ_URL": url, "PYTHONUNBUFFERED": "1"},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await process.stdout.readline()
        yield process
    finally:
        process.terminate()
        await process.communicate()


async def shell(command: str) -> object:
    """What a command prints, read as JSON."""
    process = await asyncio.create_subprocess_shell(command, stdout=PIPE, stdin=DEVNULL)
    async with asyncio.timeout(PATIENCE_S):
        output, _ = await process.communicate()
    return json.loads(output)


async def test_the_web_app_and_the_worker_of_the_documents(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "shop.py").write_text(code("shop.py"))
    (tmp_path / "web.py").write_text(code("web.py").replace("8080", str(port)))
    (worker,) = commands("worker")
    assert worker.startswith("zq worker ")
    join, total, thumb = [each.replace("8080", str(port)) for each in commands("calls")]

    async with (
        running(tmp_path / "data") as server,
        started(tmp_path, ["web.py"], url := f"http://127.0.0.1:{server.port}"),
        started(tmp_path, ["-m", "zq.cli", *worker.split()[1:]], url),
    ):
        assert await shell(total) == 3
        made = await shell(thumb)
        assert isinstance(made, dict)
        assert re.fullmatch(r"/thumbs/[0-9a-f]{16}/cat\.png", made["path"])
        assert await shell(thumb) == made
        for command, answer in zip(commands("calls from elsewhere"), ELSEWHERE, strict=True):
            said = await called(command, url)
            assert said | answer == said, command
        first, second = await shell(join), await shell(join)
        assert isinstance(first, dict)
        assert first["queued before"] is False
        assert second == first | {"queued before": True}


ELSEWHERE: list[dict[str, object]] = [
    {"result": 3},
    {"result": "welcomed ann@example.org in cs"},
    {"status": "completed", "result": 7},
    {"queue": "thumbs", "type": "thumbs"},
]
"""What comes of the calls from elsewhere."""


async def called(command: str, url: str) -> dict[str, object]:
    """What a call of one of the tasks answers; of `zq`, what it prints as the `result`."""
    command = command.replace(SERVER, url)
    if command.startswith("zq "):
        process = await asyncio.create_subprocess_exec(
            *started_by(command),
            env=clean_environment() | {"ZQ_URL": url},
            stdin=DEVNULL,
            stdout=PIPE,
        )
        async with asyncio.timeout(PATIENCE_S):
            output, _ = await process.communicate()
        return {"result": json.loads(output)}
    answer = await shell(command)
    assert isinstance(answer, dict)
    return answer


def at(server: ServerProcess) -> str:
    return f"http://127.0.0.1:{server.port}"


LIGHT = {"PYTEST_ADDOPTS": "-p no:schemathesis -p no:hypothesispytest"}
"""Lets pytest do without plugins of our own environment that take a third of its start."""


async def run(directory: Path, words: list[str], url: str) -> str:
    """What a program says, which has to end well."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        cwd=directory,
        env=clean_environment() | LIGHT | {"ZQ_URL": url},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_the_first_task_of_the_documents(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(code("sums.py"))
    work, call = code("sums").splitlines()
    async with (
        running(tmp_path / "data") as server,
        started(tmp_path, ["-m", "zq.cli", *work.split()[1:]], at(server)),
    ):
        assert await run(tmp_path, call.split()[1:], at(server)) == "3\n"


async def test_the_files_of_the_documents_run_in_order(tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    for name in ("queues/profile.fifo.py", "rename.py"):
        (tmp_path / name).write_text(code(name))
    produce, work = code("rename").splitlines()
    async with running(tmp_path / "data") as server, zq.App(at(server)) as app:
        await run(tmp_path, produce.split()[1:], at(server))
        stored = (await app.backend.jobs()).jobs
        assert [job.payload["name"] for job in stored] == ["Ann", "Anna", "Hanna"]
        await run(tmp_path, ["-m", "zq.cli", *work.split()[1:]], at(server))
        outcomes = [await app.backend.result(job.id, 0) for job in stored]
        assert [outcome.result for outcome in outcomes] == [
            f"user-7 is {name} now" for name in ("Ann", "Anna", "Hanna")
        ]


async def test_the_edge_script_of_the_documents_needs_no_server(tmp_path: Path) -> None:
    script = code("probe.py")
    assert "sqlite:///tmp/probe" in script
    (tmp_path / "probe.py").write_text(script.replace("/tmp/probe", f"{tmp_path}/data"))
    for _ in range(2):
        assert "[41.0, 42.0]" in await run(tmp_path, ["probe.py"], "")


async def test_the_test_of_the_documents_passes(tmp_path: Path) -> None:
    (tmp_path / "test_sums.py").write_text(code("test_sums.py"))
    (command,) = commands("test sums")
    assert "1 passed" in await run(tmp_path, command.split()[1:], "")


def test_the_test_without_pytest_passes(tmp_path: Path) -> None:
    (tmp_path / "test_mail.py").write_text(code("test_mail.py"))
    (command,) = commands("test mail")
    done = subprocess.run(
        [sys.executable, *command.split()[1:]], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "OK"), done.stderr


def test_the_documents_tell_of_every_option() -> None:
    rows = region("options").splitlines()[2:]
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]

    assert sorted(told) == sorted(CHECKS)
