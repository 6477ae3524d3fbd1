"""A restored database: complete or missing, and with another identity than the original."""

import io
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from crash.fleet import leave_free, small_disk

from zq.model.commands import Claim
from zq.model.ids import codec_of
from zq.model.job import JobRecord
from zq.model.leasing import Terms
from zq.model.lifecycle import Status
from zq.store.errors import (
    DamagedDatabase,
    DatabaseTooNew,
    DirectoryInUse,
    DirectoryNotEmpty,
    ForeignDatabase,
    RestoreUnfinished,
    StoreFull,
)
from zq.store.sqlite import restore
from zq.store.sqlite.connection import PAGE_BYTES
from zq.store.sqlite.files import FILE_NAME, LOCK_NAME, RESTORING_NAME
from zq.store.sqlite.lock import DirectoryLock
from zq.store.sqlite.migrate import migrate
from zq.store.sqlite.restore import restoring
from zq.store.sqlite.store import open_store
from zq.tick.runner import make_ticks

from ..rig import CACHE_BYTES, POLICY, Rig


async def copied(rig: Rig) -> bytes:
    with await rig.store.backup(0) as copy:
        return copy.read()


def put_back(database: bytes, directory: Path) -> Path:
    with restoring(directory) as write:
        write(io.BytesIO(database), len(database), lambda _done, _all: None)
    return directory


async def opened(directory: Path) -> Rig:
    rig = Rig(directory)
    await rig.open()
    return rig


async def claimed(rig: Rig, count: int) -> list[JobRecord]:
    """Jobs that a claimant holds, whose lease survives a restart of the server."""
    terms = {9: Terms(lease_ms=3_600_000, claimant="c")}
    result = await rig.run(claims=[Claim(None, [(9, count)], terms=terms)])
    return result.claimed[0]


def ids_of(rig: Rig, keys: list[int]) -> list[str]:
    return codec_of(rig.store.at_start.id_suffix, rig.store.at_start.former_suffixes).texts(keys)


async def test_all_jobs_are_there_and_nobody_holds_one(rig: Rig, tmp_path: Path) -> None:
    keys = await rig.keep(5)
    assert len(await rig.take(2)) == len(await claimed(rig, 2)) == 2
    other = await opened(put_back(await copied(rig), tmp_path / "other"))
    try:
        assert await other.statuses() == dict.fromkeys(keys, Status.READY)
        assert len(await other.take(10)) == 5
    finally:
        await other.close()


async def test_a_restored_database_is_another_one_whose_old_jobs_keep_their_ids(
    rig: Rig, tmp_path: Path
) -> None:
    old = await rig.keep(3)
    copy = await copied(rig)
    stores = [rig]
    try:
        stores.append(await opened(put_back(copy, tmp_path / "one")))
        stores.append(await opened(put_back(copy, tmp_path / "two")))
        third = await copied(stores[1])
        stores.append(await opened(put_back(third, tmp_path / "three")))

        assert len({store.store.at_start.epoch for store in stores}) == 4
        assert len({tuple(ids_of(store, old)) for store in stores}) == 1
        # They mint at the same moment, with clocks that agree.
        keys = [await store.keep(3) for store in stores]
        new = [ids_of(store, mine) for store, mine in zip(stores, keys, strict=True)]
        assert len({id for ids in new for id in ids}) == 12
        assert all(mine[0] > old[-1] for mine in keys)
    finally:
        for store in stores[1:]:
            await store.close()


async def test_a_copy_of_an_older_version_is_brought_up_to_date(rig: Rig, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        migrate(connection, upto=4)
        # As long as there was no mark.
        connection.execute("PRAGMA application_id = 0")
    other = await opened(put_back(old.read_bytes(), tmp_path / "other"))
    await other.keep(1)
    await other.close()


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.exists() else set()


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda data: b"", DamagedDatabase),
        (lambda data: b"no database" * 10_000, DamagedDatabase),
        (lambda data: data[: len(data) // 2], DamagedDatabase),
        (lambda data: data[:8192] + bytes(40_960) + data[49_152:], DamagedDatabase),
    ],
)
async def test_a_damaged_database_leaves_the_directory_as_it_was(
    rig: Rig, tmp_path: Path, exists: bool, spoil: Any, error: type[Exception]
) -> None:
    await rig.keep(500)
    target = tmp_path / "other"
    if exists:
        target.mkdir()
    with pytest.raises(error):
        put_back(spoil(await copied(rig)), target)
    assert target.exists() is exists
    assert files(target) <= {LOCK_NAME}


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("PRAGMA user_version = 99", DatabaseTooNew),
        ("PRAGMA application_id = 1", ForeignDatabase),
        ("UPDATE queue_counts SET n = n + 1", DamagedDatabase),
    ],
)
async def test_a_database_that_is_not_for_this_zq_is_refused(
    rig: Rig, tmp_path: Path, statement: str, error: type[Exception]
) -> None:
    await rig.keep(1)
    file = tmp_path / "changed.db"
    file.write_bytes(await copied(rig))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(error):
        put_back(file.read_bytes(), tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["zq.db", "zq.db-wal", "zq.db.damaged-2026-11-28T120000Z"])
async def test_a_directory_with_files_of_a_database_is_refused(
    rig: Rig, tmp_path: Path, name: str
) -> None:
    copy = await copied(rig)
    target = tmp_path / "other"
    target.mkdir()
    (target / name).touch()
    with pytest.raises(DirectoryNotEmpty, match=f"it holds {name}"):
        put_back(copy, target)
    assert files(target) == {LOCK_NAME, name}


async def test_what_is_no_database_stays_beside_it_whether_it_succeeds_or_not(
    rig: Rig, tmp_path: Path
) -> None:
    """The service has its keys, its certificates and its log there."""
    copy = await copied(rig)
    target = tmp_path / "other"
    (target / "log").mkdir(parents=True)
    (target / "log" / "zq.log").touch()
    (target / "keys").write_text("# ours")
    with pytest.raises(DamagedDatabase):
        put_back(copy[:8192], target)
    assert files(target) == {LOCK_NAME, "keys", "log"}
    put_back(copy, target)
    assert files(target) == {FILE_NAME, LOCK_NAME, "keys", "log"}
    assert ((target / "keys").read_text(), files(target / "log")) == ("# ours", {"zq.log"})


async def test_a_directory_that_somebody_has_is_refused(rig: Rig, tmp_path: Path) -> None:
    copy = await copied(rig)
    with pytest.raises(DirectoryInUse):
        put_back(copy, rig.directory)
    lock = DirectoryLock(tmp_path / "starting")
    with pytest.raises(DirectoryInUse):
        put_back(copy, tmp_path / "starting")
    lock.release()


async def test_what_root_restores_belongs_to_the_owner_of_the_directory(
    rig: Rig, tmp_path: Path
) -> None:
    assert os.geteuid() == 0, "these tests run as root"
    directory = tmp_path / "other"
    directory.mkdir()
    os.chown(directory, 4711, 4712)

    put_back(await copied(rig), directory)

    found = {path.name: path.stat() for path in directory.iterdir()}
    assert {name: (of.st_uid, of.st_gid) for name, of in found.items()} == dict.fromkeys(
        (FILE_NAME, LOCK_NAME), (4711, 4712)
    )


async def test_a_disk_that_is_too_small_is_found_out_before_it_is_full(
    rig: Rig, tmp_path: Path
) -> None:
    with pytest.raises(StoreFull, match="are free in"), restoring(tmp_path / "other") as write:
        write(io.BytesIO(b""), 2**60, lambda _done, _all: None)
    assert not (tmp_path / "other").exists()


@pytest.fixture(scope="module")
def old_copy(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A copy of a server's database that a restore has to migrate."""
    file = tmp_path_factory.mktemp("old") / "zq.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        migrate(connection, upto=20)
        connection.execute(
            "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 1000)"
            " INSERT INTO jobs (id, queue, type, priority, status, ready_at, payload, payload_size)"
            " SELECT id, 'q', 't', 0, 1, 0, '1', 1 FROM n"
        )
        connection.execute("INSERT INTO queue_counts VALUES ('q', 1, 1000)")
        # The header of a copy says that it has a log, as that of the server's file does.
        connection.execute("PRAGMA journal_mode = WAL")
    return file.read_bytes()


def test_a_disk_that_is_nearly_full_gets_a_sound_database_or_nothing(
    old_copy: bytes, tmp_path: Path
) -> None:
    ends = {"sound": 0, "refused": 0}
    with small_disk(tmp_path / "disk", mib=4) as disk:
        for free in range(len(old_copy), 3 * len(old_copy), 8 * PAGE_BYTES):
            leave_free(disk, free)
            target = disk / "other"
            try:
                put_back(old_copy, target)
            except StoreFull:
                assert not target.exists()
                ends["refused"] += 1
                continue
            assert files(target) == {FILE_NAME, LOCK_NAME}, free
            with closing(sqlite3.connect(target / FILE_NAME)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            ends["sound"] += 1
            shutil.rmtree(target)
    assert all(ends.values()), ends


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["_write", "_make_ready", "_begin_anew"])
async def test_race_a_kill_amid_a_restore_lets_no_server_start_until_it_is_done_again(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A kill removes nothing, so what it leaves is what this makes as the clean-up is left out."""
    keys = await rig.keep(3)
    copy = await copied(rig)
    target = tmp_path / "other"
    real = getattr(restore, step)

    def killed(*arguments: Any) -> None:
        real(*arguments)
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(restore, step, killed)
        patch.setattr(restore, "_remove_rest", lambda _directory: None)
        target.mkdir()
        with pytest.raises(_Killed):
            put_back(copy, target)
    assert (target / RESTORING_NAME).exists()
    assert not (target / FILE_NAME).exists()

    with pytest.raises(RestoreUnfinished, match="zq restore"):
        await open_store(
            target,
            make_ticks(POLICY, Random(1)),
            cache_bytes=CACHE_BYTES,
            read_timeout=60.0,
            max_wal=2**30,
        )
    assert not (target / FILE_NAME).exists()

    other = await opened(put_back(copy, target))
    assert list(await other.statuses()) == keys
    await other.close()
    assert not list(target.glob(f"{RESTORING_NAME}*"))
