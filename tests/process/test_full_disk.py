"""A disk that is really full: a file system of its own, small enough to fill quickly.

Needs root.
"""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.client import Client, Reply, ids, new_job
from conformance.streams import PATIENCE_S, pause

from .server import running

MIB = 1024 * 1024
SIZE = 48 * MIB
BULK = {"jobs": [new_job(payload="x" * 100_000)] * 10}
"""About 1 MiB."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of `SIZE` bytes."""
    mount = tmp_path / "disk"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "zq-test", mount], check=True)
    yield mount
    subprocess.run(["umount", "--lazy", mount], check=True)


def free(disk: Path) -> int:
    space = os.statvfs(disk)
    return space.f_bavail * space.f_frsize


def in_advance(disk: Path) -> int:
    """The bytes that are allocated behind the ends of the server's files."""
    states = [file.stat() for file in (disk / "data").glob("zq.db*")]
    return sum(max(state.st_blocks * 512 - state.st_size, 0) for state in states)


async def fill(client: Client, jobs: int = 10) -> tuple[list[str], Reply]:
    """Enqueue so many jobs at a time until the server refuses.

    The ids of what is stored, and the refusal.
    """
    stored: list[str] = []
    bulk = {"jobs": [new_job(payload="x" * 100_000)] * jobs}
    while (reply := await client.post("/jobs/bulk", bulk)).status == 201:
        stored += ids(reply.doc["jobs"])
    return stored, reply


async def work_off(client: Client, count: int) -> list[str]:
    """Take and acknowledge so many jobs, some at a time; their ids."""
    stream = await client.take(prefetch=20)
    done: list[str] = []
    while len(done) < count:
        job = await stream.job()
        await client.succeed(job["id"])
        done.append(job["id"])
    await stream.close()
    return done


async def test_the_reserve_is_kept_for_acknowledgements(disk: Path) -> None:
    flags = ("--disk-reserve", "12MiB")
    async with running(disk / "data", *flags) as server, server.client() as client:
        stored, refusal = await fill(client)

        assert refusal.status == 507
        assert "--disk-reserve" in refusal.error
        assert free(disk) + in_advance(disk) > 4 * MIB
        assert await work_off(client, len(stored)) == stored
        assert await client.count() == 0
        # The space comes back while the server has nothing else to do.
        while (await client.post("/jobs/bulk", BULK)).status != 201:
            assert (await client.get("/health")).status == 200


def has_room_for_its_log(database: Path) -> bool:
    """True if the file need not grow when the log is copied into it."""
    with contextlib.closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as reader:
        pages: int = reader.execute("PRAGMA page_count").fetchone()[0]
        page_bytes: int = reader.execute("PRAGMA page_size").fetchone()[0]
    return database.stat().st_size >= pages * page_bytes


async def test_the_log_is_copied_while_there_is_still_room_for_it(disk: Path) -> None:
    """Later the database could not grow any more, and the log would never begin anew."""
    flags = ("--disk-reserve", "12MiB", "--upkeep-interval", "1h")
    async with running(disk / "data", *flags) as server, server.client() as client:
        await fill(client, 3)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if has_room_for_its_log(disk / "data" / "zq.db"):
                    break
                await asyncio.sleep(0.01)


@contextlib.contextmanager
def greedy_program(disk: Path) -> Iterator[None]:
    """Another program, which takes each byte of the disk as soon as it is free."""
    end, is_full = threading.Event(), threading.Event()

    def take() -> None:
        with (disk / "somebody's").open("wb", buffering=0) as file:
            for size in (MIB, 4096):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass
            is_full.set()
            while not end.wait(0.001):
                with contextlib.suppress(OSError):
                    file.write(bytes(4096))

    thread = threading.Thread(target=take)
    thread.start()
    try:
        assert is_full.wait(PATIENCE_S)
        yield
    finally:
        end.set()
        thread.join()


async def test_acknowledgements_need_nothing_that_another_program_can_take(disk: Path) -> None:
    """Its log is long and not copied yet, the database has to grow for it, and no byte is free.

    So many acknowledgements follow that the log begins anew again and again.
    """
    flags = ("--disk-reserve", "16MiB", "--upkeep-interval", "1h")
    async with running(disk / "data", *flags) as server, server.client() as client:
        stored = await client.enqueue_many(500)
        big = await client.enqueue_many(20, payload="x" * 100_000)
        assert not has_room_for_its_log(disk / "data" / "zq.db")
        with greedy_program(disk):
            assert free(disk) == 0
            assert await work_off(client, len(stored) + len(big)) == [*stored, *big]
        assert await client.count() == 0


async def test_a_reserve_is_allocated_while_the_server_runs(disk: Path) -> None:
    """A quarter of it stays free for anybody. The figure of free space has all of it."""
    async with running(disk / "data", "--disk-reserve", "16MiB") as server:
        assert 11 * MIB < in_advance(disk) < 13 * MIB
        async with server.client() as client, asyncio.timeout(PATIENCE_S):
            # The first copy of the log gives the blocks of the database back for a moment.
            told = 0
            while told != free(disk) + in_advance(disk):
                told = (await client.get("/status")).doc["disk"]["free_bytes"]
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0
    assert in_advance(disk) < MIB


async def test_blocks_are_allocated_when_space_becomes_scarce(disk: Path) -> None:
    """Where there is much of it, nobody has less of it because of a server."""
    flags = ("--disk-reserve", "2MiB", "--upkeep-interval", "1h")
    async with running(disk / "data", *flags) as server, server.client() as client:
        await client.enqueue()
        assert in_advance(disk) < MIB
        (disk / "somebody's").write_bytes(bytes(20 * MIB))
        async with asyncio.timeout(PATIENCE_S):
            while in_advance(disk) < MIB:
                await client.enqueue()
                await asyncio.sleep(0.05)


async def run_into_the_end(client: Client, disk: Path) -> list[str]:
    """Let somebody else fill the disk while the server believes in its last look at it.

    The ids of what is stored until a tick has really failed for want of space.
    """
    other = disk / "somebody's"
    stored: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while True:
            stored += await client.enqueue_many(10, payload="x" * 100_000)
            with contextlib.suppress(OSError), other.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            # What the log has room for, having begun anew, is still taken.
            while (reply := await client.post("/jobs/bulk", BULK)).status == 201:
                stored += [job["id"] for job in reply.doc["jobs"]]
            assert reply.status == 507
            if "no space left" in reply.error:
                return stored
            other.unlink()


async def test_a_server_outlives_a_disk_that_others_have_filled(disk: Path) -> None:
    async with running(disk / "data", "--disk-reserve", "0") as server, server.client() as client:
        stored = await run_into_the_end(client, disk)

        assert free(disk) == 0
        for _ in range(20):  # it refuses for as long as it lasts, and goes on
            assert (await client.post("/jobs/bulk", BULK)).status == 507
        async with asyncio.timeout(PATIENCE_S):  # it looks at the disk once a second
            while "With --disk-reserve 0 none" not in str((await client.get("/health")).doc):
                await pause()
        assert await client.count() == len(stored)
        (disk / "somebody's").unlink()
        assert await work_off(client, len(stored)) == stored
        late = await client.enqueue_many(10)
        await server.kill()

    async with running(disk / "data", "--disk-reserve", "0") as server, server.client() as client:
        assert await work_off(client, len(late)) == late
