"""Peers that vanish without a word, and peers that stay and do not read.

Real time and a real network: what TCP itself notices, and when, is what is tested.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.client import Client, ids
from conformance.raw import RawConnection
from conformance.streams import PATIENCE_S, TakeStream

from .network import Network
from .server import running
from .worker import Worker

NOTICED_WITHIN_BEATS = 3
"""The promise for a peer that has vanished while its socket buffer is not full is 10 s. So many
heartbeats of 3 s fit into that, and on a busy machine they come later, too."""

EXPOSED = ("--host", "0.0.0.0", "--insecure")

SMALL = 4096
"""A receive buffer, in bytes, that is soon full."""


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


async def all_of(stream: TakeStream, wanted: list[str]) -> None:
    """Take jobs until all the wanted ones have come; others may come in between."""
    missing = set(wanted)
    while missing:
        missing.discard((await stream.job())["id"])


async def beats(stream: TakeStream) -> int:
    """How many heartbeats have come on a stream without jobs."""
    count = 0
    while await stream.has_frame():
        assert await stream.frame() is None
        count += 1
    return count


async def test_the_jobs_of_a_vanished_peer_go_to_another_worker(
    network: Network, tmp_path: Path
) -> None:
    async with running(tmp_path, *EXPOSED) as server, server.client() as client:
        jobs = await client.enqueue_many(3, queue="q")
        async with await network.connect(server.port) as connection:
            doomed = Worker(connection)
            await doomed.take(prefetch=3, queue="q")
            assert ids(await doomed.jobs(3)) == jobs
            await doomed.heartbeat()  # it vanishes right after a sign of life: the longest wait
            network.cut()

            quiet, other = await client.take(queue="none"), await client.take(prefetch=3)
            taken = await other.jobs(3)
            assert await beats(quiet) <= NOTICED_WITHIN_BEATS
            assert [(job["id"], job["attempts"]) for job in taken] == [(id, 0) for id in jobs]


async def test_a_peer_that_vanishes_while_jobs_keep_coming_is_noticed_too(
    network: Network, tmp_path: Path
) -> None:
    async def produce(client: Client) -> None:
        while True:
            await client.enqueue(queue="busy")
            await asyncio.sleep(0.1)  # never so long a silence as a heartbeat waits for

    async with running(tmp_path, *EXPOSED) as server, server.client() as client:
        held = await client.enqueue_many(3, queue="busy")
        async with await network.connect(server.port) as connection:
            doomed = Worker(connection)
            await doomed.take(prefetch=100_000, queue="busy")
            assert ids(await doomed.jobs(3)) == held
            producer = asyncio.create_task(produce(client))
            await doomed.jobs(3)
            network.cut()

            quiet = await client.take(queue="none")
            other = await client.take(prefetch=100_000, queue="busy")
            async with asyncio.timeout(PATIENCE_S):
                await all_of(other, held)
            assert await beats(quiet) <= NOTICED_WITHIN_BEATS
            producer.cancel()
            await asyncio.wait([producer])


async def test_who_only_does_not_read_keeps_its_jobs_and_slows_nobody(
    network: Network, tmp_path: Path
) -> None:
    # The shorter heartbeat makes the server suspicious sooner: after two of them without a reply.
    flags = (*EXPOSED, "--heartbeat-interval", "1s")
    network.limit_send_buffers(SMALL)
    async with (
        running(tmp_path, *flags) as server,
        server.client() as client,
        await RawConnection.open(server.port) as connection,
        await RawConnection.open(server.port, SMALL) as full_connection,
        await network.connect(server.port, SMALL) as far_connection,
    ):
        workers = {
            "idle": Worker(connection),
            "full": Worker(full_connection),
            "far": Worker(far_connection),
        }
        jobs = {"idle": await client.enqueue_many(1, queue="idle")}
        for queue in ("full", "far"):
            # Small ones first: a nearly full buffer holds back a part of what has been sent.
            jobs[queue] = await client.enqueue_many(50, queue=queue, payload="x" * 100)
            jobs[queue] += await client.enqueue_many(20, queue=queue, payload="x" * 20_000)
        for queue, worker in workers.items():
            await worker.take(prefetch=100, queue=queue)
            await client.until_count(len(jobs[queue]), queue=queue, status="in_flight")

        greedy = await client.take(prefetch=1000, queue=",".join([*workers, "last"]))
        lively = await client.take(prefetch=50, queue="lively")
        for _ in range(12):  # seconds, as the heartbeats tell
            await client.enqueue_many(50, queue="lively", payload="x" * 1000)
            await client.succeed(*ids(await lively.jobs(50)))
            assert await lively.frame() is None

        for queue, worker in workers.items():
            assert ids(await worker.jobs(len(jobs[queue]))) == jobs[queue]
            await client.succeed(*jobs[queue])
        last = await client.enqueue(queue="last")
        assert (await greedy.job())["id"] == last["id"]  # nothing else has ever come to it


@pytest.mark.parametrize("count", [5, 100], ids=["a little waits", "much waits"])
async def test_who_reads_nothing_for_too_long_loses_its_jobs(
    count: int, network: Network, tmp_path: Path
) -> None:
    """Little: less than the event loop lets pile up before it makes a writer wait."""
    network.limit_send_buffers(SMALL)
    flags = ("--stall-timeout", "2s", "--heartbeat-interval", "500ms")
    async with (
        running(tmp_path, *flags) as server,
        server.client() as client,
        await RawConnection.open(server.port, SMALL) as connection,
    ):
        jobs = await client.enqueue_many(count, payload="x" * 10_000)
        stalled = Worker(connection)
        await stalled.take(prefetch=count, queue="default")
        await client.until_count(count, status="in_flight")
        other = await client.take(prefetch=count)
        async with asyncio.timeout(PATIENCE_S):
            assert sorted(ids(await other.jobs(count))) == sorted(jobs)


async def test_who_reads_slowly_but_steadily_keeps_its_jobs(
    network: Network, tmp_path: Path
) -> None:
    """The limit is for reading nothing at all: each byte that is read starts it anew."""
    network.limit_send_buffers(SMALL)
    flags = ("--stall-timeout", "4s", "--heartbeat-interval", "1s")
    async with (
        running(tmp_path, *flags) as server,
        server.client() as client,
        await RawConnection.open(server.port, SMALL) as connection,
    ):
        jobs = await client.enqueue_many(1, payload="x" * 200_000)
        slow = Worker(connection)
        await slow.take(prefetch=1, queue="default")
        greedy = await client.take(prefetch=1)
        for _ in range(6):  # seconds, each with a bite
            assert await greedy.frame() is None
            await connection.read(10_000)
        assert await client.count(status="in_flight") == len(jobs)
