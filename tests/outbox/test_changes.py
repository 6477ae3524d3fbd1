"""What wakes a relay on SQLite."""

import asyncio
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from conformance.streams import PATIENCE_S, pause
from crash.disk import compile_library

from zq import outbox
from zq.outbox import sqlite
from zq.outbox.changes import FileChanges
from zq.outbox.relay import source_at
from zq.outbox.sqlite import SqliteSource


@pytest.mark.parametrize("mode", ["WAL", "DELETE", "TRUNCATE"])
async def test_a_commit_of_another_program_wakes_the_relay_in_each_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(sqlite, "IDLE_S", 10 * PATIENCE_S)
    file = tmp_path / "shop.db"
    (tmp_path / "link.db").symlink_to(file)
    with closing(sqlite3.connect(file)) as program:
        program.execute(f"PRAGMA journal_mode={mode}")
        outbox.create_table(program)
        program.commit()
        source = SqliteSource(str(tmp_path / "link.db"))
        await source.open()
        assert await source.oldest() == []
        changed = asyncio.create_task(source.changed())
        program.execute("INSERT INTO zq_outbox (document) VALUES ('a')")
        program.commit()
        async with asyncio.timeout(PATIENCE_S):
            await changed
        assert [row.document for row in await source.oldest()] == [b"a"]
        await source.close()


WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("INSERT INTO zq_outbox (document) VALUES ('a')")
connection.commit()
"""


async def test_a_commit_whose_flush_takes_long_wakes_the_relay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of the commit's last write, and the commit can be seen after the flush."""
    monkeypatch.setattr(sqlite, "IDLE_S", 10 * PATIENCE_S)
    library = compile_library(tmp_path, "slow_flush", Path(__file__).parent)
    file, slow = tmp_path / "shop.db", tmp_path / "slow"
    with closing(sqlite3.connect(file)) as program:
        program.execute("PRAGMA journal_mode=WAL")
        outbox.create_table(program)
        program.commit()
    source = SqliteSource(str(file))
    await source.open()
    await source.oldest()
    assert source._connection is not None
    looks: list[str] = []
    slow.touch()
    writer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WRITER, file),
        env={"LD_PRELOAD": str(library), "SLOW_FLUSH": str(slow)},
    )
    async with asyncio.timeout(PATIENCE_S):
        while not file.with_name("shop.db-wal").stat().st_size:
            await pause()
        source._connection.set_trace_callback(looks.append)
        changed = asyncio.create_task(source.changed())
        while len(looks) < 12:
            await pause()
        slow.unlink()
        await changed
        await writer.wait()
    assert [row.document for row in await source.oldest()] == [b"a"]
    await source.close()


async def test_a_relay_at_rest_hardly_looks(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as program:
        program.execute("PRAGMA journal_mode=WAL")
        outbox.create_table(program)
        program.commit()
        source = SqliteSource(str(file))
        await source.open()
        await source.oldest()
        assert source._connection is not None
        looks: list[str] = []
        source._connection.set_trace_callback(looks.append)
        changed = asyncio.create_task(source.changed())
        began = time.monotonic()
        await asyncio.sleep(1)  # the time in which it must look ever more seldom
        # A busy machine makes it longer.
        assert len(looks) <= 12 + 4 * (time.monotonic() - began - 1)
        await source.close()  # which ends the wait
        await changed


def test_a_wait_without_notifications_is_short(tmp_path: Path) -> None:
    changes = FileChanges()
    changes.watch([tmp_path / "missing"])
    changes._forget()
    assert changes.wait(PATIENCE_S) is False
    changes.end()
    assert changes.has_ended
    changes.close()


@pytest.mark.parametrize("slashes", ["sqlite://", "sqlite:///", "sqlite+pysqlite:///"])
async def test_an_absolute_file_may_have_one_slash_more(tmp_path: Path, slashes: str) -> None:
    """So other libraries write it, and programs give both the same address."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as program:
        outbox.create_table(program)
        program.commit()
    source = source_at(f"{slashes}{tmp_path}/shop.db")
    await source.open()
    assert await source.oldest() == []
    await source.close()
