"""Another program holds the database's lock: everything waits, nothing is taken for broken."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from conformance.streams import pause
from manual_clock import ManualClock
from store.rig import new_job

from zq.engine.foreign_lock import PATIENCE_S
from zq.instance import Instance
from zq.model.errors import DatabaseLocked
from zq.model.filters import EVERYTHING
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE

LONG_MS = round(PATIENCE_S * 1000)


def foreign(root: Path) -> sqlite3.Connection:
    """Another program's connection, which waits for nobody."""
    return sqlite3.connect(root / "zq.db", isolation_level=None, timeout=0, check_same_thread=False)


@contextmanager
def locked(root: Path) -> Iterator[sqlite3.Connection]:
    """Another program in a transaction that writes, within the block."""
    with closing(foreign(root)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


async def until(is_so: Callable[[], Any]) -> None:
    """Let the event loop run until something is so."""
    while not is_so():
        await pause()


async def enqueue(instance: Instance) -> None:
    await instance.services.jobs.enqueue([new_job()], EVERYWHERE)


async def count(instance: Instance) -> int:
    return await instance.services.listing.count(EVERYTHING)


@pytest.fixture
async def idle(instance: Instance, clock: ManualClock) -> AsyncIterator[Instance]:
    """An engine that has stored a job and has upkeep to do as soon as its clock moves."""
    await enqueue(instance)
    yield instance
    assert not instance.engine.failure.done()


async def test_race_idle_upkeep_meets_a_lock_and_the_engine_outlives_it(
    idle: Instance, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock, met_at = idle.engine.lock, 0
    caplog.set_level(logging.INFO)
    with locked(tmp_path):
        for _ in range(2 * LONG_MS // 1000):
            clock.advance(1000)
            await until(lambda: lock.since is not None)
            met_at = met_at or lock.since or 0
            assert lock.since == met_at
        await until(lambda: "another program holds the database's lock" in caplog.text)
    clock.advance(1000)
    await until(lambda: lock.since is None)

    assert "the database takes changes again" in caplog.text
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
    await enqueue(idle)
    assert await count(idle) == 2


async def test_race_a_change_waits_for_a_lock_once_and_later_ones_are_told_at_once(
    idle: Instance, clock: ManualClock, tmp_path: Path
) -> None:
    with locked(tmp_path):
        first = asyncio.create_task(enqueue(idle))
        await until(lambda: idle.engine.lock.since is not None)
        beside = asyncio.create_task(enqueue(idle))
        await asyncio.sleep(0)
        clock.advance(LONG_MS - 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not first.done()
        clock.advance(1)
        for task in (first, beside):
            with pytest.raises(DatabaseLocked):
                await task
        # The clock stands still: nobody waits any more.
        with pytest.raises(DatabaseLocked):
            await enqueue(idle)
    await enqueue(idle)
    assert await count(idle) == 2
    assert idle.engine.lock.since is None


async def test_race_a_change_meets_a_lock_that_is_released_in_time(
    idle: Instance, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with locked(tmp_path):
        change = asyncio.create_task(enqueue(idle))
        await until(lambda: idle.engine.lock.since is not None)
    await change
    assert await count(idle) == 2
    assert caplog.text == ""


async def test_race_a_claim_behind_a_lock_gets_a_lease_that_begins_when_it_is_released(
    idle: Instance, clock: ManualClock, tmp_path: Path
) -> None:
    work, terms = idle.services.work, Terms(1000, claimant="c")
    with (
        locked(tmp_path) as other,
        work.claimer("q", EVERYWHERE, 1, terms, wait_ms=60_000) as claimer,
    ):
        await until(lambda: idle.engine.lock.since is not None)
        clock.advance(3000)
        other.execute("ROLLBACK")
        (job,) = await claimer.take()
    assert job.lease_until == clock.now_ms() + 1000


async def test_race_a_compaction_waits_for_a_lock_and_then_says_so(
    idle: Instance, clock: ManualClock, tmp_path: Path
) -> None:
    with locked(tmp_path):
        compaction = asyncio.create_task(idle.services.maintenance.compact())
        await until(lambda: idle.engine.lock.since is not None)
        while not compaction.done():
            clock.advance(1000)
            await pause()
        with pytest.raises(DatabaseLocked):
            await compaction
    compaction = asyncio.create_task(idle.services.maintenance.compact())
    while not compaction.done():
        clock.advance(1000)
        await pause()
    await compaction


async def test_race_the_end_of_the_engine_does_not_wait_for_a_lock(
    idle: Instance, clock: ManualClock, tmp_path: Path
) -> None:
    with locked(tmp_path):
        change = asyncio.create_task(enqueue(idle))
        await until(lambda: idle.engine.lock.since is not None)
        end = asyncio.create_task(idle.engine.stop())
        clock.advance(LONG_MS)
        await end
        with pytest.raises(DatabaseLocked):
            await change


async def test_race_a_log_that_another_program_copies_is_not_taken_for_copied(
    idle: Instance, tmp_path: Path
) -> None:
    """SQLite answers then that -1 of -1 pages are copied."""
    with closing(foreign(tmp_path)) as copier, closing(foreign(tmp_path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchone()
        await enqueue(idle)
        # It waits for the reader, and meanwhile keeps all others from copying.
        copier.execute("PRAGMA busy_timeout = 60000")

        def truncate() -> None:
            # Nobody waits for the lock of another copy, and `third` may have it just now.
            while copier.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                pass

        copying = asyncio.create_task(asyncio.to_thread(truncate))
        with closing(foreign(tmp_path)) as third:
            await until(lambda: third.execute("PRAGMA wal_checkpoint").fetchone()[0])
        await idle._store.checkpoint()
        uncopied = idle._store.uncopied_bytes
        reader.execute("COMMIT")
        await copying
    assert uncopied > 0
    await idle._store.checkpoint()
    assert idle._store.uncopied_bytes == 0
