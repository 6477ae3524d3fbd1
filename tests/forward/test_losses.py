"""What forwarders are known to lose or to leave lying. Here nothing of it happens.

Each test names an outage after which another forwarder had lost jobs, sent none any more, or held
a limit by losing what it was to keep.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conformance.client import Client
from crash.conftest import disk_library
from crash.disk import Disk, new_disk
from crash.fleet import Machine, small_disk
from crash.test_time import WallClock, clock_library
from process.server import running
from process.test_full_disk import has_room_for_its_log

from .edge import Edge, until

__all__ = ["clock_library", "disk_library"]

HOUR_MS = 3_600_000


async def test_the_first_hours_of_an_outage_of_88_hours_arrive(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay(batch=50)
        edge.cable.cut()
        for hour in range(88):
            await edge.push(*range(hour * 20, hour * 20 + 20))
            edge.device.clock.advance(HOUR_MS)
            edge.hub.clock.advance(HOUR_MS)
            if hour % 30 == 29:
                await edge.crash_away(edge.device)

        edge.cable.target = edge.hub.port
        await edge.hurry()

        assert await edge.eventually(88 * 20) == list(range(88 * 20))


async def test_a_backlog_leaves_without_a_new_job(tmp_path: Path) -> None:
    """Neither a start of the device nor the return of the hub needs a nudge."""
    async with Edge(tmp_path).running() as edge:
        await edge.push(*range(10))
        await edge.lay(batch=4)
        edge.cable.cut()
        await edge.device.restart()
        await until(lambda: edge.progress.error)

        edge.cable.target = edge.hub.port

        assert await edge.eventually(10) == list(range(10))


async def test_a_job_stays_until_the_hub_has_answered(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await until(lambda: edge.progress.state == "idle")
        edge.cable.fall_silent()
        await edge.push(*range(5))
        await until(lambda: edge.progress.state == "sending")
        assert [job["payload"] for job in await edge.left()] == list(range(5))

        await edge.crash(edge.device)

        assert await edge.eventually(5) == list(range(5))


async def test_a_bound_holds_and_what_was_accepted_is_kept(tmp_path: Path) -> None:
    """Many clients at once, and a start in between, do not get past a bound."""
    async with Edge(tmp_path).running() as edge:
        edge.cable.cut()
        await edge.lay(max_bytes=10_000)
        accepted: list[str] = []

        async def push(name: str) -> None:
            payload = name.ljust(98, ".")
            reply = await edge.near.post("/jobs", {"queue": "out", "type": "t", "payload": payload})
            assert reply.status in (201, 507)
            if reply.status == 201:
                accepted.append(payload)

        for part in range(3):
            await asyncio.gather(*(push(f"{part}/{number}") for number in range(60)))
            left = await edge.left()
            assert len(left) * 100 <= 10_000
            await edge.crash_away(edge.device)
        assert len(accepted) == 100

        edge.cable.target = edge.hub.port

        assert sorted(await edge.eventually(100)) == sorted(accepted)


@pytest.mark.parametrize("depth", [7, 30])
async def test_a_hub_whose_queue_is_full_gets_the_jobs_later(tmp_path: Path, depth: int) -> None:
    """It takes what it has room for, also if that is less than a batch."""
    async with Edge(tmp_path).running() as edge:
        await edge.far.patch("/queues/out/settings", {"max_depth": depth})
        await edge.push(*range(100))
        await edge.lay(batch=20)
        got: list[Any] = []
        async with Client(edge.hub, edge.far.wire) as worker:
            stream = await worker.take(prefetch=5)
            while len(got) < 100:
                job = await stream.job()
                got.append(job["payload"])
                await worker.succeed(job["id"])
                if edge.progress.state == "waiting":
                    assert edge.progress.error_code == "queue_full"
                    await edge.hurry()

        assert got == list(range(100))
        assert edge.progress.refused == 0 and await edge.left() == []


async def test_a_hub_without_space_gets_the_jobs_later(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.hub.restart(disk_reserve=2**52)
        edge.cable.target = edge.hub.port
        await edge.push(*range(10))
        await edge.lay()
        await until(lambda: edge.progress.error_code == "storage_full")
        assert len(await edge.left()) == 10

        await edge.restart_hub(disk_reserve=0)

        assert await edge.eventually(10) == list(range(10))


@pytest.fixture
def device_disk(disk_library: Path, tmp_path: Path) -> Disk:
    return new_disk(disk_library, tmp_path)


async def test_a_device_goes_on_after_each_hard_reset(tmp_path: Path, device_disk: Disk) -> None:
    """The power goes amid its work: what was not synced is lost by chance, sector by sector."""
    random, stored = Random(1), list[int]()
    async with Edge(tmp_path).running() as edge:
        edge.cable.target = edge.hub.port
        flags = ("--device", "d2", "--forward", f"out*={edge.url}")
        for cut, survives in enumerate((0.0, 0.5, 0.0)):
            async with (
                running(device_disk.root, *flags, env=device_disk.environment()) as server,
                server.client() as client,
            ):
                for part in range(10):
                    numbers = range((cut * 10 + part) * 10, (cut * 10 + part) * 10 + 10)
                    jobs = [{"queue": "out", "type": "t", "payload": n} for n in numbers]
                    reply = await client.post("/jobs/bulk", {"jobs": jobs})
                    assert reply.status == 201
                    stored += numbers
                await server.kill()
            device_disk.cut_power(survives, random)
        async with running(device_disk.root, *flags):
            assert await edge.eventually(len(stored)) == stored


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", mib=32) as mount:
        yield mount


async def test_a_disk_that_is_full_to_the_last_byte_still_drains(
    tmp_path: Path, full_disk: Path, clock_library: Path
) -> None:
    async with Edge(tmp_path).running() as edge:
        edge.cable.cut()
        clock = WallClock(clock_library, tmp_path / "clock")
        reserve = ("--disk-reserve", "8MiB")
        flags = ("--device", "d2", "--forward", f"out*={edge.url}", *reserve)
        device = Machine("d2", full_disk, clock, *flags)
        await device.start()
        try:
            stored = await _fill(device)
            await until(lambda: has_room_for_its_log(device.root / "zq.db"))
            device.fill_disk()
            assert os.statvfs(full_disk).f_bavail == 0
            edge.cable.target = edge.hub.port
            await device.ask("POST", "/forward/out/resume", {})

            async def is_empty() -> bool:
                return not (await device.ask("GET", "/jobs/count")).doc["count"]

            await until(is_empty)
        finally:
            await device.kill()

        assert len(await edge.arrived()) == stored


async def _fill(device: Machine) -> int:
    """Store jobs until the device refuses them."""
    stored = 0
    jobs = [{"queue": "out", "type": "t", "payload": "x" * 10_000}] * 50
    while (await device.ask("POST", "/jobs/bulk", {"jobs": jobs})).status == 201:
        stored += len(jobs)
    return stored
