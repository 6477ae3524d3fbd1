"""A copy of a store in use: complete, of one moment, without a name, and in nobody's way."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import pytest
from conformance.streams import pause

from zq.model.commands import Clear
from zq.store.errors import StoreBusy, StoreError, StoreFull
from zq.store.sqlite import backup
from zq.store.sqlite.files import COPY_NAME, FILE_NAME

from ..rig import Rig


class Turns:
    """Lets a copy go on only when the test says so: one slice of one page at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._at_rest = threading.Event()
        self._go_on = threading.Semaphore(0)
        self._free = False
        monkeypatch.setattr(backup, "PAGES", 1)
        monkeypatch.setattr("zq.store.sqlite.backup.sleep", self._rest)

    def _rest(self, _seconds: float) -> None:
        self._at_rest.set()
        if not self._free:
            self._go_on.acquire(timeout=60)

    async def between_slices(self) -> None:
        """Until the copy rests; the event loop goes on meanwhile."""
        assert await asyncio.to_thread(self._at_rest.wait, 30)

    async def slices(self, count: int) -> None:
        for _ in range(count):
            self._at_rest.clear()
            self._go_on.release()
            await self.between_slices()

    def free(self) -> None:
        """It need not wait any more."""
        self._free = True
        self._go_on.release()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[Turns]:
    turns = Turns(monkeypatch)
    yield turns
    turns.free()


def written(copy: BinaryIO, directory: Path) -> Path:
    """A data directory with the copy, which is closed."""
    directory.mkdir()
    with copy:
        (directory / FILE_NAME).write_bytes(copy.read())
    return directory


async def opened(copy: BinaryIO, directory: Path) -> Rig:
    """A store that begins with the copy."""
    rig = Rig(written(copy, directory))
    await rig.open()
    return rig


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def is_sound(directory: Path) -> bool:
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
        return list(connection.execute("PRAGMA integrity_check")) == [("ok",)]


async def test_a_copy_has_what_was_stored_and_goes_on_from_there(rig: Rig, tmp_path: Path) -> None:
    keys = await rig.keep(5, payload=f'"{"x" * 100_000}"')
    await rig.take(2)

    copy = await rig.store.backup(0)
    await rig.keep(1)

    other = await opened(copy, tmp_path / "other")
    try:
        assert list(await other.statuses()) == keys
        assert (other.store.at_start.returned, other.store.at_start.epoch) == (
            2,
            rig.store.at_start.epoch,
        )
        assert other.store.at_start.last_key >= keys[-1]
        await other.keep(1)
    finally:
        await other.close()


async def test_race_ticks_between_slices_are_in_the_copy_whole(
    rig: Rig, tmp_path: Path, turns: Turns
) -> None:
    old = await rig.keep(2_000)
    copying = asyncio.create_task(rig.store.backup(0))
    await turns.between_slices()
    await turns.slices(30)
    # They change pages that are copied already, and others that are not.
    new = await rig.keep(3, queue="beside")
    await rig.take(1_000)
    await turns.slices(3)
    new += await rig.keep(3, queue="beside")
    turns.free()
    copy = await copying

    other = await opened(copy, tmp_path / "other")
    try:
        assert is_sound(tmp_path / "other")
        assert list(await other.statuses()) == old + new
        assert other.store.at_start.returned == 1_000
    finally:
        await other.close()


async def test_race_a_checkpoint_between_slices_copies_the_log_whole_and_restarts_it(
    rig: Rig, tmp_path: Path, turns: Turns
) -> None:
    keys = await rig.keep(2_000)
    copying = asyncio.create_task(rig.store.backup(0))
    await turns.between_slices()
    for _ in range(3):
        await turns.slices(5)
        keys += await rig.keep(200)
        await rig.store.checkpoint(shrink=True)
        assert rig.store.uncopied_bytes == 0
        assert rig.store.wal_bytes() < 16_384
    turns.free()
    assert is_sound(written(await copying, tmp_path / "other"))


async def test_race_free_space_is_given_back_between_slices(
    rig: Rig, tmp_path: Path, turns: Turns
) -> None:
    await rig.keep(500, payload=f'"{"x" * 10_000}"')
    copying = asyncio.create_task(rig.store.backup(0))
    await turns.between_slices()
    await turns.slices(20)
    await rig.run(Clear(settings=True))
    keys = await rig.keep(3)
    while await rig.store.tidy(spare=False):
        pass
    await rig.store.checkpoint(shrink=True)
    turns.free()
    other = await opened(await copying, tmp_path / "other")
    try:
        assert list(await other.statuses()) == keys
        assert is_sound(tmp_path / "other")
    finally:
        await other.close()


async def test_race_a_transaction_that_is_undone_is_not_in_the_copy(
    rig: Rig, tmp_path: Path, turns: Turns
) -> None:
    """Pages that did not fit into memory were written to the log, and to the copy, before."""
    await rig.keep(2_000)
    writer = rig.store._writer.raw
    copying = asyncio.create_task(rig.store.backup(0))
    await turns.between_slices()
    await turns.slices(30)
    writer.execute("PRAGMA cache_size = 4")
    writer.execute("PRAGMA cache_spill = 1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE jobs SET payload = '\"undone\"'")
    writer.execute("ROLLBACK")
    turns.free()
    directory = written(await copying, tmp_path / "other")
    assert is_sound(directory)
    assert b"undone" not in (directory / FILE_NAME).read_bytes()


async def test_a_copy_is_for_its_owner_alone_and_has_no_name(rig: Rig, turns: Turns) -> None:
    await rig.keep(2_000)
    before = names(rig.directory)
    (rig.directory / COPY_NAME).write_text("left by a kill at the wrong moment")
    copying = asyncio.create_task(rig.store.backup(0))
    await turns.between_slices()
    assert names(rig.directory) == before
    turns.free()
    with await copying as copy:
        found = os.fstat(copy.fileno())
        assert (found.st_mode & 0o777, found.st_nlink) == (0o600, 0)


async def test_another_program_that_keeps_writing_ends_it(rig: Rig, turns: Turns) -> None:
    await rig.keep(2_000)
    copying = asyncio.create_task(rig.store.backup(0))
    await turns.between_slices()
    with closing(sqlite3.connect(rig.directory / FILE_NAME, isolation_level=None)) as other:
        for _ in range(backup.MOST_RESTARTS + 1):
            await turns.slices(2)
            other.execute("CREATE TABLE IF NOT EXISTS theirs (x)")
            other.execute("INSERT INTO theirs VALUES (1)")
        turns.free()
        with pytest.raises(StoreBusy, match="another program writes"):
            await copying
    assert await rig.keep(1)


async def test_what_is_to_stay_free_stays_free(
    rig: Rig, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.keep(2_000)
    free = [100]
    rig.store._copies._free_bytes = lambda: free[0]
    copying = asyncio.create_task(rig.store.backup(100))
    await turns.between_slices()
    await turns.slices(5)
    free[0] = 99
    turns.free()
    with pytest.raises(StoreFull):
        await copying
    assert await rig.keep(1)


@pytest.mark.parametrize("by", ["a cancel", "a close"])
async def test_race_a_copy_that_is_given_up_lets_go_of_everything(
    rig: Rig, turns: Turns, by: str
) -> None:
    await rig.keep(2_000)
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    copying = asyncio.create_task(rig.store.backup(0))
    await turns.between_slices()
    await turns.slices(5)
    if by == "a cancel":
        copying.cancel()
        await asyncio.sleep(0)
        turns.free()
    else:
        closing_it = asyncio.create_task(rig.store.close())
        (made,) = rig.store._copies._copying
        while made._is_wanted:
            await pause()
        turns.free()
        await closing_it
    with pytest.raises((asyncio.CancelledError, backup.GivenUp)):
        await copying
    assert len(os.listdir("/proc/self/fd")) <= descriptors  # noqa: PTH208
    assert COPY_NAME not in names(rig.directory)
    if by == "a close":
        rig._store = None
        await rig.open()
    assert await rig.keep(1)


async def test_a_directory_that_takes_no_file_makes_no_copy(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_path: Path) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(backup, "create_private", refuses)
    with pytest.raises(PermissionError):
        await rig.store.backup(0)
    assert await rig.keep(1)


async def test_a_copy_that_cannot_be_written_is_an_error_of_its_own(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "PRAGMAS", ("journal_mode = OFF", "max_page_count = 3"))
    await rig.keep(2_000)
    with pytest.raises(StoreError):
        await rig.store.backup(0)
    assert await rig.keep(1)
