"""The write-ahead log over its limit: the reader in the way is noticed, and its end too."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ..rig import Rig

LIMIT = 1024 * 1024
PATIENCE = "PRAGMA busy_timeout"
ONE_PAGE = 8192
"""What a log that has begun anew holds: its header, and the page that begins it."""

PAYLOAD = f'"{"x" * 10_000}"'


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data", max_wal=LIMIT)
    await rig.open()
    yield rig
    await rig.close()


@pytest.fixture
def reader(rig: Rig) -> Iterator[sqlite3.Connection]:
    """Another program in the middle of a long read."""
    reader = sqlite3.connect(rig.directory / "zq.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM jobs").fetchone()
    yield reader
    reader.close()


async def grow(rig: Rig) -> None:
    while rig.store.wal_bytes() <= LIMIT:
        await rig.keep(20, payload=PAYLOAD)


async def traced(rig: Rig) -> list[str]:
    """What the writer's connection runs from now on."""
    statements: list[str] = []
    writer = rig.store._writer
    await writer.set_trace_callback(statements.append)
    return statements


async def test_without_a_reader_in_the_way_a_checkpoint_empties_it(rig: Rig) -> None:
    await grow(rig)
    await rig.store.checkpoint()
    assert not rig.store.wal_is_over
    assert rig.store.wal_bytes() <= ONE_PAGE


async def test_a_reader_keeps_it_over_its_limit_until_it_ends(
    rig: Rig, reader: sqlite3.Connection
) -> None:
    await grow(rig)
    assert not rig.store.wal_is_over  # nobody has tried to copy it
    for _ in range(2):
        await rig.store.checkpoint()
        assert rig.store.wal_is_over
    reader.execute("COMMIT")
    await rig.store.checkpoint()
    assert not rig.store.wal_is_over
    assert rig.store.wal_bytes() <= ONE_PAGE


async def test_a_reader_of_what_is_newest_is_not_waited_for(rig: Rig) -> None:
    await grow(rig)
    reader = sqlite3.connect(rig.directory / "zq.db", isolation_level=None)
    reader.execute("BEGIN")
    jobs = reader.execute("SELECT count(*) FROM jobs").fetchone()
    # All can be copied, but the file cannot be emptied under the reader: and nobody waits for it.
    statements = await traced(rig)
    await rig.store.checkpoint()
    assert rig.store.wal_is_over
    assert statements[-1] == "PRAGMA wal_checkpoint(TRUNCATE)"
    assert [tuple(row) for row in await rig.store._writer.execute_fetchall(PATIENCE)] == [(0,)]
    assert reader.execute("SELECT count(*) FROM jobs").fetchone() == jobs
    reader.close()
    await rig.store.checkpoint()
    assert not rig.store.wal_is_over


async def test_a_long_log_is_not_copied_more_often_for_its_length(
    rig: Rig, reader: sqlite3.Connection
) -> None:
    async def jobs_between_checkpoints() -> int:
        jobs = 0
        while not rig.store.wants_checkpoint:
            jobs += len(await rig.keep(200))
        await rig.store.checkpoint()
        return jobs

    jobs = [await jobs_between_checkpoints() for _ in range(6)]
    assert rig.store.uncopied_bytes > 0
    assert jobs[-1] > jobs[1] / 2
