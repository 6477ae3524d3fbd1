"""A running server for systemd and its owner: notifications, and how little it costs."""

import asyncio
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conformance.client import new_job
from conformance.streams import PATIENCE_S, pause

from .server import ServerProcess, refused, running

WATCHDOG_LIMIT_S = 0.4
"""As in WatchdogSec=; the server is to report twice as often."""


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        yield receiver


@pytest.fixture
def service(tmp_path: Path) -> dict[str, str]:
    """The variables that systemd sets for a service with a watchdog."""
    limit = str(int(WATCHDOG_LIMIT_S * 1_000_000))
    return {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": limit}


async def told(systemd: socket.socket) -> str:
    async with asyncio.timeout(PATIENCE_S):
        return (await asyncio.get_running_loop().sock_recv(systemd, 4096)).decode()


async def told_in_the_end(systemd: socket.socket) -> str:
    """The next notification that is no sign of life."""
    while (state := await told(systemd)) == "WATCHDOG=1":
        pass
    return state


async def test_ready_means_that_requests_are_answered(
    systemd: socket.socket, service: dict[str, str], tmp_path: Path
) -> None:
    server = await ServerProcess.spawn(tmp_path / "data", "--drain", "1h", env=service)
    try:
        assert await told(systemd) == "READY=1"
        async with (await server.listening()).client() as client:
            assert (await client.get("/health")).status == 200
            await client.in_flight()
            assert [await told(systemd) for _ in range(3)] == ["WATCHDOG=1"] * 3
            # It says that it stops when it begins to, not when it is done.
            server.signal(signal.SIGTERM)
            assert await told_in_the_end(systemd) == "STOPPING=1"
            assert (await client.get("/health")).status == 200
        assert await server.exited() == 0
    finally:
        await server.kill()


async def test_a_refused_start_is_never_ready(
    systemd: socket.socket, service: dict[str, str], tmp_path: Path
) -> None:
    async with running(tmp_path / "data"):
        code, _ = await refused(tmp_path / "data", env=service)
        assert code == os.EX_TEMPFAIL

    with pytest.raises(BlockingIOError):
        systemd.recv(4096)


async def test_a_server_that_waits_for_another_programs_lock_gives_signs_of_life(
    systemd: socket.socket, service: dict[str, str], tmp_path: Path
) -> None:
    async with running(tmp_path / "data", env=service) as server, server.client() as client:
        assert await told(systemd) == "READY=1"
        with closing(sqlite3.connect(tmp_path / "data" / "zq.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            enqueue = asyncio.create_task(client.post("/jobs", new_job()))
            while "database_locked" not in (await client.get("/health")).doc:
                await pause()
            for _ in range(3):
                assert await told(systemd) == "WATCHDOG=1"
            other.execute("ROLLBACK")
        assert (await enqueue).status == 201


def processor_time(pid: int) -> float:
    """Seconds that a process has spent on processors, in its own code and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_an_idle_server_uses_next_to_no_processor_time(tmp_path: Path) -> None:
    flags = ("--heartbeat-interval", "1s", "--default-completed-job-retention", "1h")
    async with running(tmp_path, *flags) as server, server.client() as client:
        # Idle is not empty: workers that wait, one that holds jobs, jobs that are due some day.
        await client.enqueue_many(100, queue="later", ready_at=time.time_ns() // 10**6 + 3_600_000)
        await client.enqueue_many(100, queue="unwanted")
        await client.make("completed")
        await client.in_flight(queue="held")
        streams = [await client.take(prefetch=10, queue="wanted") for _ in range(20)]
        for stream in streams:
            assert await stream.frame() is None

        began, spent = time.monotonic(), processor_time(server.pid)
        for _ in range(4):
            assert await streams[0].frame() is None
        share = (processor_time(server.pid) - spent) / (time.monotonic() - began)

    assert share < 0.05
