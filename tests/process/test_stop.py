"""SIGTERM and SIGINT: deliveries end, acknowledgements pass, streams end, nothing is lost."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from conformance.client import JSON, MSGPACK, Client, new_job
from conformance.raw import RawConnection
from conformance.streams import CUTTERS, pause

from .server import ServerProcess, clean_environment, running

RECOVERED = "jobs in flight at the last stop are ready again"

either_signal = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


async def stopping(server: ServerProcess, number: signal.Signals = signal.SIGTERM) -> None:
    server.signal(number)
    await server.logged("stopping")


async def stopped(server: ServerProcess) -> None:
    """Wait for a stop in good order."""
    assert await server.exited() == 0
    assert (server.messages[-1], server.errors) == ("Server stopped.", b"")


async def states(client: Client) -> dict[str, tuple[str, int]]:
    """Status and attempts of every job."""
    return {job["id"]: (job["status"], job["attempts"]) for job in await client.jobs()}


@either_signal
async def test_a_drain_takes_acknowledgements_and_delivers_nothing_more(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with running(tmp_path, "--drain", "1h") as server, server.client() as client:
        jobs = await client.enqueue_many(5)
        async with server.client() as worker:
            stream = await worker.take(prefetch=4)
            assert len(await stream.jobs(4)) == 4

            await stopping(server, number)
            async with server.client(MSGPACK) as other:  # as most workers: on a new connection
                await other.succeed(jobs[0])
                assert (await other.send("POST", f"/jobs/{jobs[1]}/success")).status == 204
                await other.fail(jobs[2], retry_at=0)
                # There is room now for the one that failed, and for the fifth.
                assert await other.count(status="in_flight") == 1
        await stopped(server)

    async with running(tmp_path) as server, server.client() as client:
        # The one still held went back before the end: there was nothing to recover.
        assert RECOVERED not in server.messages
        assert await states(client) == {
            jobs[2]: ("ready", 1),
            jobs[3]: ("ready", 0),
            jobs[4]: ("ready", 0),
        }


async def test_the_stop_is_early_where_nothing_is_held(tmp_path: Path) -> None:
    async with running(tmp_path, "--drain", "1h") as server, server.client() as client:
        stream = await client.take()  # idle, as workers mostly are
        await stopping(server)
        await stream.ended()
        await stopped(server)


async def test_the_last_acknowledgement_ends_the_drain(tmp_path: Path) -> None:
    async with running(tmp_path, "--drain", "1h") as server, server.client() as client:
        job = await client.in_flight()
        await stopping(server)
        await client.succeed(job["id"])
        await stopped(server)


async def test_a_stream_that_ends_in_the_drain_ends_the_drain(tmp_path: Path) -> None:
    async with running(tmp_path, "--drain", "1h") as server, server.client() as client:
        async with server.client() as worker:
            job = await worker.in_flight()
            await stopping(server)
        await stopped(server)

    async with running(tmp_path) as server, server.client() as client:
        assert await states(client) == {job["id"]: ("ready", 0)}


@pytest.mark.parametrize("accept", CUTTERS)
async def test_every_kind_of_stream_ends_with_its_last_chunk(accept: str, tmp_path: Path) -> None:
    async with running(tmp_path, "--drain", "0") as server, server.client() as client:
        stream = await client.take(accept=accept)
        await client.enqueue()
        await stream.job()
        await stopping(server)
        await stream.ended()
        await stopped(server)


@either_signal
async def test_a_second_signal_leaves_at_once_and_the_next_start_recovers(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with running(tmp_path, "--drain", "1h") as server, server.client() as client:
        job = await client.in_flight()
        await stopping(server)
        server.signal(number)
        assert await server.exited() == 1
        assert "Server stopped." not in server.messages

    async with running(tmp_path) as server, server.client() as client:
        line = await server.logged(RECOVERED)
        assert line["fields"]["jobs"] == 1
        assert await states(client) == {job["id"]: ("ready", 0)}


async def test_what_was_answered_before_the_stop_is_there_after_it(tmp_path: Path) -> None:
    stored: list[str] = []

    async def produce(client: Client) -> None:
        while True:
            reply = await client.post("/jobs", new_job(payload="x" * 2_000))
            assert reply.status == 201
            stored.append(reply.doc["id"])
            enough.set()

    enough = asyncio.Event()
    async with running(tmp_path) as server, server.client() as client:
        producers = [asyncio.create_task(produce(client)) for _ in range(16)]
        await enough.wait()
        await stopping(server)
        for ended in await asyncio.gather(*producers, return_exceptions=True):
            assert isinstance(ended, httpx.TransportError)
        await stopped(server)

    async with running(tmp_path) as server, server.client() as client:
        for start in range(0, len(stored), 1000):
            chunk = stored[start : start + 1000]
            assert await client.count(id=",".join(chunk)) == len(chunk)


async def test_a_worker_that_reads_nothing_does_not_hold_the_stop_up(tmp_path: Path) -> None:
    async with running(tmp_path, "--drain", "1s") as server, server.client() as client:
        # A bulk may bring 16 MiB.
        for _ in range(2):
            await client.enqueue_many(20, payload="x" * 500_000)
        async with await RawConnection.open(server.port, receive_buffer=4096) as worker:
            await worker.send(b"GET /jobs/take?prefetch=40 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await worker.head()
            while not await client.count(status="in_flight"):
                await pause()
            await stopping(server)
            await stopped(server)

    async with running(tmp_path) as server, server.client() as client:
        assert RECOVERED not in server.messages
        assert await client.count(status="ready") == 40


@pytest.mark.parametrize(
    "unfinished",
    [
        b"",
        b"POST /jobs HTTP/1.1\r\nHo",
        b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
    ],
    ids=["nothing sent", "half a head", "half a body"],
)
async def test_an_unfinished_request_does_not_hold_the_stop_up(
    unfinished: bytes, tmp_path: Path
) -> None:
    async with (
        running(tmp_path, "--drain", "0") as server,
        await RawConnection.open(server.port) as slow,
        server.client(JSON) as client,
    ):
        await slow.send(unfinished)
        assert (await client.get("/health")).status == 200  # a connection that stays open, idle
        await stopping(server)
        await stopped(server)


def test_the_first_process_of_a_container_ends_while_it_starts(tmp_path: Path) -> None:
    """The kernel keeps signals from it that it has no handler for."""
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(3600)\n")
    apart = ("unshare", "--pid", "--fork", "--kill-child")
    words = (*apart, sys.executable, "-m", "zq.cli", "worker", "slow:app")
    environment = clean_environment() | {"PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(words, env=environment) as started:
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
        for _ in range(600):
            for child in children.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGTERM)  # too early, it goes nowhere
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(0.1)
                break
        else:
            started.kill()
    assert started.returncode == 128 + signal.SIGTERM
