"""The programs and commands of docs/outbox.md, run as they are printed."""

import asyncio
import importlib
import shlex
import sqlite3
import sys
from pathlib import Path

import pytest
from documents import code, commands
from process.server import clean_environment

import zq
from zq.testing import TestServer, run_until_idle


async def shell(line: str, server: TestServer, folder: Path) -> str:
    tool, *words = shlex.split(line)
    assert tool == "zq"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", *words),
        cwd=folder,
        env=clean_environment() | {"ZQ_URL": server.url},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_the_programs_and_the_commands(
    zq_server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ZQ_URL", zq_server.url)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    (tmp_path / "shop.py").write_text(code("outbox app"))
    (tmp_path / "programs.py").write_text(code("outbox programs"))
    shop = importlib.import_module("shop")
    connection = sqlite3.connect("shop.db")
    (table,) = commands("outbox table")
    (relay,) = commands("outbox relay")

    shop.prepare(connection)
    connection.executescript(await shell(table, zq_server, tmp_path))
    shop.buy(connection, 4711)
    with pytest.raises(sqlite3.IntegrityError):
        shop.buy(connection, 4711)
    await shell(relay, zq_server, tmp_path)
    (outcome,) = await run_until_idle(shop.app)
    assert outcome.ok

    programs = importlib.import_module("programs")
    working = asyncio.create_task((worker := zq.Worker(shop.app)).run())
    await programs.serve()
    await worker.stop()
    await working
    await shop.app.close()
    connection.close()
    monkeypatch.delitem(sys.modules, "shop")
    monkeypatch.delitem(sys.modules, "programs")
