"""A page that cannot be read: the rows on it are set aside, and everything else goes on."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from zq.model.commands import DeleteJob, Fail, SetAside, Succeed
from zq.model.filters import EVERYTHING
from zq.model.job import JobRecord
from zq.model.reach import EVERYWHERE
from zq.model.settling import Failure
from zq.store.errors import StoreDamaged
from zq.store.sqlite.quarantine import UnreadableRows

from ..rig import NOW, Rig, new_job

PAGE = 4096


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data")
    await rig.open()
    yield rig
    await rig.store.abandon()


async def stored(rig: Rig, count: int) -> list[int]:
    """Jobs with payloads that lie beside them, each on a page of its own or more."""
    keys = []
    for number in range(count):
        keys += await rig.keep(1, payload=f'"{number}{"x" * 3000}"')
    return keys


async def spoil(rig: Rig, table: str, place: int) -> None:
    """Zero one leaf of a table in the file, and open the store on it without a check."""
    await rig.store.checkpoint(shrink=True)
    file = rig.directory / "zq.db"
    with closing(sqlite3.connect(file)) as connection:
        leaves = leaves_of(connection, file, table)
    await rig.store.close()
    with file.open("r+b") as opened:
        opened.seek((leaves[place] - 1) * PAGE)
        opened.write(bytes(PAGE))
    await rig.open()

    async def set_aside(source: str, keys: Any) -> None:
        await rig.run(SetAside(source, keys))

    rig.store.when_unreadable = set_aside


def leaves_of(connection: sqlite3.Connection, file: Path, table: str) -> list[int]:
    """The leaves of a table that has one level above them, by their pointers."""
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table])
    content = file.read_bytes()
    page = content[(root[0] - 1) * PAGE : root[0] * PAGE]
    assert page[0] in (2, 5), "the root is no interior page"
    count = int.from_bytes(page[3:5], "big")
    cells = [int.from_bytes(page[12 + 2 * n : 14 + 2 * n], "big") for n in range(count)]
    return [int.from_bytes(page[cell : cell + 4], "big") for cell in cells]


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start does not check a file over a size; here that is every file."""
    monkeypatch.setattr("zq.store.sqlite.damage.CHECKED_BYTES", 0)


async def listed(rig: Rig) -> list[JobRecord]:
    return await rig.store.reads.jobs_page(EVERYTHING, -1, False, 1000, NOW)


async def test_jobs_whose_payloads_lie_on_a_bad_page_are_set_aside(rig: Rig) -> None:
    keys = await stored(rig, 20)
    await spoil(rig, "payloads", 4)
    kept = [job.key for job in await listed(rig)]
    gone = set(keys) - set(kept)
    assert 1 <= len(gone) <= 2
    assert {(row.source, row.key) for row in rig.store.quarantined.latest} == {
        ("jobs", str(key)) for key in gone
    }
    assert "its payload lies on a page that" in rig.store.quarantined.latest[0].reason
    assert [job.key for job in await rig.take(20)] == kept
    assert len(await rig.store.reads.payloads(kept)) == len(kept)


async def test_a_bad_page_of_error_records_is_named_and_stops_nothing_else(rig: Rig) -> None:
    keys = await rig.keep(30)
    await rig.take(30)
    await rig.run(*(Fail(key, Failure("x" * 3000)) for key in keys))
    await spoil(rig, "errors", 0)
    found, failed = 0, 0
    for key in keys:
        try:
            found += len(await rig.errors(key))
        except UnreadableRows:
            failed += 1
    assert (found + failed, failed > 0) == (30, True)
    assert rig.store.quarantined.rows == failed
    for key in keys:
        await rig.run(DeleteJob(key, EVERYWHERE))
    assert await listed(rig) == []


async def test_deliveries_set_them_aside_too(rig: Rig) -> None:
    keys = await stored(rig, 20)
    await spoil(rig, "payloads", 4)
    assert [job.key for job in await rig.take(20)] == keys
    found = await rig.store.reads.payloads(keys)
    assert rig.store.quarantined.rows == len(keys) - len(found) > 0


async def test_neighbours_of_a_bad_page_can_be_settled_and_deleted(rig: Rig) -> None:
    await stored(rig, 20)
    await spoil(rig, "payloads", 4)
    kept = [job.key for job in await listed(rig)]
    taken = [job.key for job in await rig.take(10)]
    await rig.run(Succeed(taken))
    for key in set(kept) - set(taken):
        await rig.run(DeleteJob(key, EVERYWHERE))
    assert await listed(rig) == []


async def test_a_bad_page_of_jobs_ends_the_store(rig: Rig) -> None:
    for _ in range(10):
        await rig.run(rig.enqueue([new_job() for _ in range(50)]))
    await spoil(rig, "jobs", 2)
    with pytest.raises(StoreDamaged, match="zq salvage"):
        await listed(rig)
