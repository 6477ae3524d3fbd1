"""Starts as small devices have them: clocks that nobody has set, cards that are full or worn.

For each, docs/promises.md says what holds. Boots of the machine are tested in tests/model.
"""

import asyncio
import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conformance.client import JSON, Client, ids
from conformance.site import Site
from process.server import refused, running
from process.test_full_disk import disk as small_disk
from process.test_full_disk import fill, work_off

from .test_time import WallClock, clock_library, wall_clock

__all__ = ["clock_library", "small_disk", "wall_clock"]

EPOCH = datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)
YEAR_MS = 365 * 86_400_000
DAY_MS = 86_400_000
HOUR_MS = 3_600_000


async def all_of(client: Client, expected: list[str]) -> None:
    """Every job that was acknowledged is delivered, once, in its order."""
    assert await work_off(client, len(expected)) == expected
    assert await client.count() == 0


async def test_a_device_boots_in_1970_and_ntp_comes_later(
    wall_clock: WallClock, tmp_path: Path
) -> None:
    """A jump of fifty years changes no duration, and a restart after it finds every job."""
    wall_clock.set(EPOCH)
    root, environment = tmp_path / "data", wall_clock.environment
    async with running(root, env=environment) as server, server.client() as client:
        first = await client.enqueue_many(3)
        await client.enqueue(queue="short", ttl_ms=HOUR_MS)
        wall_clock.step(50 * YEAR_MS)
        second = await client.enqueue_many(3)
        assert await client.count(queue="short", status="ready") == 1
        # The step is told once the dates that it has passed are counted, which delays no request.
        async with asyncio.timeout(10):
            while "clock_set" not in (health := (await client.get("/health")).doc):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert health["clock_set"]["by_ms"] == pytest.approx(50 * YEAR_MS, abs=60_000)
        await server.kill()
    async with running(root, env=environment) as server, server.client() as client:
        assert await client.count(queue="short", status="ready") == 1
        assert (await client.delete("/jobs", queue="short")).status == 200
        await all_of(client, first + second)


async def test_a_device_starts_a_day_before_its_last_job(
    wall_clock: WallClock, tmp_path: Path
) -> None:
    root, environment = tmp_path / "data", wall_clock.environment
    async with running(root, env=environment) as server, server.client() as client:
        first = await client.enqueue_many(3)
        await server.kill()
    wall_clock.step(-DAY_MS)
    async with running(root, env=environment) as server, server.client() as client:
        second = await client.enqueue_many(3)
        assert sorted(first + second) == first + second
        await all_of(client, first + second)


def with_proc(options: str) -> tuple[str, ...]:
    """The words before a command that make it see a /proc with these options, as a unit may."""
    script = f'mount -t proc -o {options} proc /proc; exec "$@"'
    return ("unshare", "--mount", "sh", "-ec", script, "sh")


async def test_a_clock_that_is_set_between_two_starts_of_the_service_changes_no_duration(
    wall_clock: WallClock, tmp_path: Path
) -> None:
    unit = (Path(__file__).parents[2] / "systemd/zq.service").read_text(encoding="utf-8")
    settings = dict(re.findall("^(ProtectProc|ProcSubset)=(.*)$", unit, re.M))
    assert settings
    names = {"ProtectProc": "hidepid", "ProcSubset": "subset"}
    proc = with_proc(",".join(f"{names[key]}={value}" for key, value in settings.items()))
    root, environment = tmp_path / "data", wall_clock.environment
    async with running(root, env=environment, before=proc) as server, server.client() as client:
        await client.enqueue(queue="short", ttl_ms=HOUR_MS)
        await server.kill()
    wall_clock.step(DAY_MS)
    async with running(root, env=environment, before=proc) as server, server.client() as client:
        assert await client.count(queue="short", status="ready") == 1
        assert not any("boot_id" in message for message in server.messages)


async def test_a_server_that_cannot_tell_a_restart_from_a_reboot_says_so(tmp_path: Path) -> None:
    async with running(tmp_path / "data", before=with_proc("subset=pid")) as server:
        (warning,) = [line for line in server.log if "boot_id" in line["fields"]["message"]]
        assert warning["level"] == "WARN"


@pytest.mark.parametrize("time_off", ["counts", "pauses"])
async def test_time_without_power_counts_if_the_setting_says_so(site: Site, time_off: str) -> None:
    """A job may wait for an hour, and the machine is off for a day."""
    async with Client(site, JSON) as client:
        await client.enqueue(queue="short", ttl_ms=HOUR_MS)
    await site.stop()
    site.clock.reboot()
    site.clock.step(DAY_MS)
    await site.start(time_off=time_off)
    async with Client(site, JSON) as client:
        stream = await client.take(queue="short")
        if time_off == "counts":
            assert not await stream.has_frame()
        else:
            await stream.job()


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A card that takes no more writes: the kernel remounts a faulty file system so."""
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)


async def test_a_start_on_a_card_that_is_read_only_says_so_and_loses_nothing(
    small_disk: Path,
) -> None:
    flags = ("--disk-reserve", "8MiB")
    async with running(small_disk / "data", *flags) as server, server.client() as client:
        stored = await client.enqueue_many(3)
        await server.kill()
    with read_only(small_disk):
        code, server = await refused(small_disk / "data", *flags)
        assert code == os.EX_IOERR
        assert any("read-only" in message.lower() for message in server.messages), server.messages
    async with running(small_disk / "data", *flags) as server, server.client() as client:
        await all_of(client, stored)


async def test_a_start_on_a_full_card_hands_out_what_it_has(small_disk: Path) -> None:
    """It refuses new jobs with the reason, and takes acknowledgements."""
    flags = ("--disk-reserve", "12MiB")
    async with running(small_disk / "data", *flags) as server, server.client() as client:
        stored, _ = await fill(client)
        await server.kill()
    async with running(small_disk / "data", *flags) as server, server.client() as client:
        refusal = await client.post("/jobs", {"queue": "q", "type": "t", "payload": "x" * 100_000})
        health = (await client.get("/health")).doc
        if refusal.status == 507:
            assert health["enqueues_refused"]["code"] == "storage_full"
        else:
            stored += ids([refusal.doc])
        await all_of(client, stored)


async def test_a_log_that_a_power_cut_has_torn_loses_nothing_that_was_answered(
    tmp_path: Path,
) -> None:
    """Half a page of an unanswered change stands at the end of the log."""
    async with running(tmp_path) as server, server.client() as client:
        stored = await client.enqueue_many(3)
        await server.kill()
    with (tmp_path / "zq.db-wal").open("ab") as log:
        log.write(os.urandom(2000))
    async with running(tmp_path) as server, server.client() as client:
        await all_of(client, stored)


async def test_a_database_that_is_torn_is_refused_until_it_is_salvaged(tmp_path: Path) -> None:
    """A start with --on-damage salvage goes on by itself, and keeps the damaged file."""
    async with running(tmp_path) as server, server.client() as client:
        await client.enqueue_many(3)
        await server.kill()
    async with running(tmp_path):  # its stop copies the log
        pass
    file = tmp_path / "zq.db"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    (tmp_path / "zq.db-wal").unlink(missing_ok=True)
    code, server = await refused(tmp_path)
    assert code == os.EX_IOERR
    assert any("salvage" in message for message in server.messages), server.messages
    async with running(tmp_path, "--on-damage", "salvage") as server, server.client() as client:
        assert (await client.post("/jobs", {"queue": "q", "type": "t", "payload": 1})).status == 201
    assert [name for name in os.listdir(tmp_path) if name.startswith("zq.db.damaged-")]  # noqa: PTH208
