"""Power cuts: acknowledged changes are on the disk; the laboratory itself can lose data."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from conformance.http2 import Broken
from conformance.streams import pause
from process.server import running
from tiers import sizes

from zq.store.sqlite.wal import walk

from .actors import Notebook
from .disk import Disk, new_disk
from .lives import judge, seed
from .power import FLUSHES, cut_again_and_again, lose_a_tail

FEW = 50
"""Of fewer cuts a way may have none."""


@sizes("cuts", 2, 300)
async def test_nothing_acknowledged_is_lost_by_a_power_cut(
    cuts: int, disk: Disk, tmp_path: Path
) -> None:
    notebook = Notebook()
    try:
        most = 300 if cuts < FEW else 1_000
        flushed = await cut_again_and_again(disk, notebook, Random(seed()), cuts, most)
    finally:
        judge(notebook.history, tmp_path)
    print(", ".join(f"{count} cuts with flushes {way}" for way, count in flushed.items()))
    assert cuts < FEW or flushed.keys() == FLUSHES.keys()


async def test_the_first_acknowledgement_ever_survives_a_power_cut(disk: Disk) -> None:
    async with running(disk.root, env=disk.environment()) as server, server.client() as client:
        id = (await client.enqueue())["id"]
        await server.kill()

    disk.cut_power(0.0, Random(1))

    async with running(disk.root, env=disk.environment()) as server, server.client() as client:
        assert [job["id"] for job in await client.jobs()] == [id]


def ends_in_a_commit(log: Path) -> bool:
    """Whether all frames of the last change are written."""
    found = walk(log)
    return found is not None and found.frames == found.recovered


async def test_a_change_of_which_a_cut_leaves_some_pages_is_no_damage(disk: Disk) -> None:
    """Its flush had not ended, so nobody was told of it."""
    log = disk.root / "zq.db-wal"
    async with running(disk.root, env=disk.environment()) as server, server.client() as client:
        id = (await client.enqueue())["id"]
        with disk.held():
            never_told = asyncio.create_task(client.enqueue_many(100, payload="never told"))
            while not (b"never told" in log.read_bytes() and ends_in_a_commit(log)):
                await pause()
            await server.kill()
        with pytest.raises(Broken):
            await never_told

    disk.cut_power(0.9, Random(1))
    found = walk(log)
    assert found is not None and found.is_last_change and not found.is_torn

    async with running(disk.root, env=disk.environment()) as server, server.client() as client:
        assert [job["id"] for job in await client.jobs()] == [id]
        assert (await client.get("/health")).doc["status"] == "ok"
    assert not [*disk.root.glob("zq.db-wal.damaged-*")]


async def test_flushes_that_are_left_out_lose_what_was_acknowledged(disk: Disk) -> None:
    forgetful = disk.environment(forgets="-wal")
    async with running(disk.root, env=forgetful) as server, server.client() as client:
        await client.enqueue()
        await server.kill()

    disk.cut_power(0.0, Random(1))

    async with running(disk.root, env=disk.environment()) as server, server.client() as client:
        assert await client.jobs() == []


async def test_buffered_mode_loses_a_tail_and_nothing_else(
    disk_library: Path, tmp_path: Path
) -> None:
    random = Random(seed())
    losses = []
    for number in range(2):  # a cut may come right after a sync, but hardly twice
        disk = new_disk(disk_library, tmp_path / str(number))
        # So few jobs cause no checkpoint, and leave no idle moment for one.
        losses.append(await lose_a_tail(disk, random, seconds=2.5, pause=0.02))

    assert sum(loss.jobs for loss in losses) > 0, "the laboratory cannot lose anything"
    assert all(loss.kept > 0 for loss in losses), "nothing was synced in all that time"
    assert all(loss.is_tail for loss in losses)
