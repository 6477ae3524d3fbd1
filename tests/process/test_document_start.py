"""The first five minutes, gone through as printed."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from conformance.streams import PATIENCE_S
from documents import code, commands, started_by

from .server import ServerProcess, running
from .test_document_programs import at, started

ORDER, PUSH, QUEUES = commands("five minutes: jobs")
(WORK,) = commands("five minutes: the worker")
(DEAD,) = commands("five minutes: the dead")
(BACK,) = commands("five minutes: back")


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServerProcess]:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    async with running(tmp_path / "data") as server:
        monkeypatch.setenv("ZQ_URL", at(server))
        yield server


async def said(directory: Path, command: str) -> str:
    """What a command prints, which has to end well."""
    process = await asyncio.create_subprocess_exec(
        *started_by(command), cwd=directory, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@asynccontextmanager
async def working(directory: Path, server: ServerProcess) -> AsyncIterator[None]:
    async with started(directory, ["-m", "zq.cli", *WORK.split()[1:]], at(server)):
        yield


async def test_a_task_runs_and_a_dead_job_comes_back(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "letters.py").write_text(code("letters.py"))
    (tmp_path / "order.py").write_text(code("order.py"))
    async with working(tmp_path, server):
        ann, carol = (await said(tmp_path, ORDER)).split()
        assert await said(tmp_path, PUSH) == '"sent to bob at example.org"\n'
        assert await said(tmp_path, f"zq wait {ann}") == '"sent to ann at example.org"\n'
        await said(tmp_path, f"! zq wait {carol}")
        assert "letters" in await said(tmp_path, QUEUES)
        assert "ValueError" in await said(tmp_path, DEAD)

    mended = code("letters.py").replace(
        'name, domain = to.split("@")', 'name, _, domain = to.partition("@")'
    )
    assert mended != code("letters.py")
    (tmp_path / "letters.py").write_text(mended)
    async with working(tmp_path, server):
        await said(tmp_path, BACK)
        assert await said(tmp_path, f"zq wait {carol}") == '"sent to carol at "\n'
        assert carol not in await said(tmp_path, DEAD)
