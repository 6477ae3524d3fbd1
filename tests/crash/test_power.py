"""Power cuts: what was acknowledged is on the disk; the laboratory itself can lose things."""

from pathlib import Path
from random import Random

from process.server import running

from .disk import Disk
from .lives import cycles, judge, seed
from .load import Notebook
from .power import cut_again_and_again, lose_a_tail


async def test_nothing_acknowledged_is_lost_by_a_power_cut(disk: Disk, tmp_path: Path) -> None:
    notebook = Notebook()
    try:
        await cut_again_and_again(disk, notebook, Random(seed()), cycles(10))
    finally:
        judge(notebook.history, tmp_path)


async def test_the_first_acknowledgement_ever_survives_a_power_cut(disk: Disk) -> None:
    async with running(disk.root, env=disk.environment()) as server, server.client() as client:
        id = (await client.enqueue())["id"]
        await server.kill()

    disk.cut_power(0.0, Random(1))

    async with running(disk.root, env=disk.environment()) as server, server.client() as client:
        assert [job["id"] for job in await client.jobs()] == [id]


async def test_buffered_mode_loses_a_tail_and_nothing_else(disk: Disk) -> None:
    loss = await lose_a_tail(disk, Random(seed()), seconds=2.5)

    assert loss.jobs > 0, "the laboratory cannot lose anything: it proves nothing"
    assert loss.kept > 0, "nothing was synced in all that time"
    assert loss.is_tail
