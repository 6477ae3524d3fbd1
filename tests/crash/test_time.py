"""Clocks that step, change to summer time or stand still while the machine sleeps.

Schedules follow the wall clock, waits the monotonic one; ids rise and order holds through it all.
"""

import signal
import struct
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conformance.client import JSON, Client, ids
from conformance.site import Site
from conformance.streams import TakeStream
from process.server import ServerProcess, running

from .disk import compile_library

HOUR_MS = 3_600_000

either_way = pytest.mark.parametrize("step", [HOUR_MS, -HOUR_MS])


class WallClock:
    """The wall clock of servers that are started with its environment."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self._ahead_ms = 0
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_FILE": str(file)}
        self.step(0)

    def step(self, ms: int) -> None:
        self.set_ahead(self._ahead_ms + ms)

    def set_ahead(self, ms: int) -> None:
        self._ahead_ms = ms
        with self._file.open("r+b" if self._file.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("=q", self._ahead_ms * 1_000_000))

    def set(self, moment: datetime) -> None:
        self.step(int(moment.timestamp() * 1000) - self.now_ms())

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("clock"), "clock")


@pytest.fixture
def wall_clock(clock_library: Path, tmp_path: Path) -> WallClock:
    return WallClock(clock_library, tmp_path / "ahead")


async def settles(client: Client, stream: TakeStream, *held: str) -> None:
    """The jobs that a stream holds are still its own, and it has got no others."""
    while await stream.has_frame():
        assert await stream.frame() is None  # a heartbeat
    await client.succeed(*held)


@either_way
async def test_a_step_redelivers_nothing_and_keeps_order_and_ids(site: Site, step: int) -> None:
    async with Client(site, JSON) as client:
        before = await client.enqueue_many(3)
        stream = await client.take(prefetch=2)
        held = [job["id"] for job in await stream.jobs(2)]

        site.clock.step(step)
        after = await client.enqueue_many(3)

        assert sorted(before + after) == before + after
        await settles(client, stream, *held)
        assert [(await stream.job())["id"], (await stream.job())["id"]] == [before[2], after[0]]


@either_way
async def test_order_and_ids_hold_across_a_step_and_a_crash(site: Site, step: int) -> None:
    async with Client(site, JSON) as client:
        before = await client.enqueue_many(2)
    site.clock.step(step)
    await site.crash()
    async with Client(site, JSON) as client:
        after = await client.enqueue_many(2)
        stream = await client.take(prefetch=4)
        assert ids(await stream.jobs(4)) == before + after == sorted(before + after)


async def test_a_schedule_follows_the_wall_clock(site: Site) -> None:
    async with Client(site, JSON) as client:
        job = await client.enqueue(ready_at=site.now + HOUR_MS)
        site.clock.step(-HOUR_MS)
        site.clock.advance(HOUR_MS)  # an hour has passed, but it is no later than before
        assert (await client.job(job["id"]))["status"] == "scheduled"
        site.clock.step(HOUR_MS)
        site.clock.advance(1_000)  # the clock is looked at once a second
        await client.until(job["id"], status="ready")


@either_way
async def test_a_wait_follows_the_monotonic_clock(site: Site, step: int) -> None:
    async with Client(site, JSON) as client:
        stream = await client.take()
        site.clock.step(step)
        assert not await stream.has_frame()  # no heartbeat is due
        await client.heartbeat(stream)


async def test_a_suspended_machine_wakes_up_to_the_jobs_that_fell_due(
    wall_clock: WallClock, tmp_path: Path
) -> None:
    environment = wall_clock.environment
    async with running(tmp_path / "data", env=environment) as server, server.client() as client:
        held = await client.in_flight(queue="held")
        soon = await client.enqueue(ready_at=wall_clock.now_ms() + HOUR_MS // 2)
        late = await client.enqueue(ready_at=wall_clock.now_ms() + 2 * HOUR_MS)
        stream = await client.take(prefetch=10)

        server.signal(signal.SIGSTOP)
        wall_clock.step(HOUR_MS)
        server.signal(signal.SIGCONT)

        assert (await stream.job())["id"] == soon["id"]
        assert (await client.job(late["id"]))["status"] == "scheduled"
        await settles(client, stream, held["id"], soon["id"])


@either_way
async def test_a_real_server_whose_clock_is_set(
    step: int, wall_clock: WallClock, tmp_path: Path
) -> None:
    environment = wall_clock.environment
    async with running(tmp_path / "data", env=environment) as server, server.client() as client:
        first = await client.enqueue_many(3)
        stream = await client.take(prefetch=3)
        assert ids(await stream.jobs(3)) == first
        wall_clock.step(step)
        second = await client.enqueue_many(3)
        await settles(client, stream, first[0])
        assert (await stream.job())["id"] == second[0]
        await server.kill()
    wall_clock.step(-2 * step)
    async with running(tmp_path / "data", env=environment) as server, server.client() as client:
        third = await client.enqueue_many(2)
        stream = await client.take(prefetch=10)
        expected = [*first[1:], *second, *third]
        assert ids(await stream.jobs(7)) == expected == sorted(expected)


@pytest.mark.parametrize(
    "change",
    [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)],
    ids=["an hour is skipped", "an hour comes twice"],
)
async def test_summer_time_moves_no_schedule(
    change: datetime, wall_clock: WallClock, tmp_path: Path
) -> None:
    wall_clock.set(change)
    wall_clock.step(-1_500)
    environment = wall_clock.environment | {"TZ": "Europe/Berlin"}
    async with running(tmp_path / "data", env=environment) as server, server.client() as client:
        wall_clock.set(change)
        wall_clock.step(-500)
        first = await client.enqueue(ready_at=wall_clock.now_ms() + 700)
        second = await client.enqueue(ready_at=wall_clock.now_ms() + 900)
        stream = await client.take(prefetch=2)
        jobs = await stream.jobs(2)
        assert ids(jobs) == [first["id"], second["id"]]
        for job in jobs:
            assert job["ready_at"] <= job["dequeued_at"] < job["ready_at"] + HOUR_MS // 2
        assert first["id"] < second["id"]
        assert _utc_hours(server) <= {0, 1}


def _utc_hours(server: ServerProcess) -> set[int]:
    """The hours of the log's times, which are UTC."""
    return {datetime.fromisoformat(line["timestamp"]).hour for line in server.log}
