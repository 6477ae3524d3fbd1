"""The ends of streams: jobs are returned at once, stalls harm nobody, a stop drains."""

import asyncio
from typing import Self

import pytest

from .client import HEARTBEAT_MS, JSON, Client, ids, new_job
from .http2 import WINDOW, Exchange, Http2Connection
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S, Frame, Job, cut_ndjson, pause

WAYS_TO_END = ["close", "half-close", "reset", "reset-stream"]
"""The last is HTTP/2's own: the connection goes on. HTTP/1.1 closes its connection instead."""

SMALL_BUFFER = 65_536
SMALL_WINDOW = 65_536


class WorkerStream:
    """A take stream by hand, over the version of HTTP that a client speaks."""

    def __init__(self, connection: RawConnection | Http2Connection, exchange: Exchange | None):
        self.connection = connection
        self._exchange = exchange
        self._ahead = b""

    @classmethod
    async def open(cls, client: Client, query: str, receive_buffer: int | None = None) -> Self:
        """With a `receive_buffer` (bytes) a peer that does not read stalls soon."""
        port, target = client.site.port, f"/jobs/take?{query}"
        if client.wire.http2:
            window = SMALL_WINDOW if receive_buffer else WINDOW
            http2 = await Http2Connection.open(port, window=window, receive_buffer=receive_buffer)
            exchange = http2.request("GET", target, [], end=True)
            assert (await exchange.head())[0] == 200
            return cls(http2, exchange)
        http1 = await RawConnection.open(port, receive_buffer)
        await http1.send(f"GET {target} HTTP/1.1\r\nHost: q\r\n\r\n".encode())
        assert (await http1.head())[0] == 200
        return cls(http1, None)

    async def begun(self) -> None:
        """Wait until the first data arrives, which `chunk` returns then."""
        if isinstance(self.connection, RawConnection):
            await self.connection.begun()
        else:
            self._ahead = await self.chunk()

    async def chunk(self) -> bytes:
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        if self._exchange is not None:
            return await self._exchange.chunk()
        assert isinstance(self.connection, RawConnection)
        return await self.connection.chunk()

    async def end(self, how: str) -> None:
        match how:
            case "reset-stream" if self._exchange is not None:
                self._exchange.cancel()
            case "close" | "reset-stream":
                await self.close()
            case "half-close":
                self.connection.half_close()
            case "reset":
                await self.connection.reset()

    async def close(self) -> None:
        await self.connection.close()


async def stalled(client: Client) -> tuple[WorkerStream, str]:
    """A stream that is being sent a job too big for the buffers, and that job.

    It waits for the first data and reads no more. A job is in flight when that is committed, and
    goes out when the disk is flushed.
    """
    stream = await WorkerStream.open(client, "queue=big&prefetch=10", receive_buffer=SMALL_BUFFER)
    job = await client.enqueue(queue="big", payload=client.overflow())
    await stream.begun()
    assert await is_big(client, job["id"], "in_flight")
    return stream, job["id"]


async def until_big(client: Client, job: str, status: str) -> None:
    """Wait for a status of a job whose body nobody wants to read again and again."""
    await client.until_count(1, id=job, status=status)


async def is_big(client: Client, job: str, status: str) -> bool:
    """Whether it has the status now."""
    return await client.count(id=job, status=status) == 1


async def test_jobs_return_at_once_whichever_way_a_stream_ends(client: Client) -> None:
    for how in WAYS_TO_END:
        issued = await client.enqueue_many(3, queue=how)
        stream = await WorkerStream.open(client, f"queue={how}&prefetch=3")
        await client.until_count(3, queue=how, status="in_flight")
        await stream.end(how)
        await client.until_count(3, queue=how, status="ready")
        other = await client.take(prefetch=0, queue=how)
        jobs = await other.jobs(3)
        assert ids(jobs) == issued, how
        assert [job["attempts"] for job in jobs] == [0, 0, 0], how
        await stream.close()


async def test_a_killed_workers_jobs_go_to_a_waiting_one(client: Client) -> None:
    first = await client.take(prefetch=5)
    issued = await client.enqueue_many(5)
    await first.jobs(5)
    second = await client.take(prefetch=5)
    await first.close()
    assert ids(await second.jobs(5)) == issued


async def test_a_stream_that_ends_before_it_read_anything_gives_all_back(client: Client) -> None:
    await client.enqueue_many(1_000, payload="x" * 10_000)
    stream = await WorkerStream.open(client, "prefetch=1000", receive_buffer=SMALL_BUFFER)
    async with asyncio.timeout(PATIENCE_S):
        while await client.count(status="in_flight") == 0:
            await pause()
    await stream.end("reset")
    await client.until_count(1_000, status="ready")


async def test_a_pipelined_request_does_not_end_a_stream(site: Site) -> None:
    async with Client(site, JSON) as client:
        stream = await WorkerStream.open(client, "prefetch=1")
        assert isinstance(stream.connection, RawConnection)
        await stream.connection.send(b"GET /health HTTP/1.1\r\nHost: q\r\n\r\n")
        job = await client.enqueue()
        assert job["id"].encode() in await stream.chunk()
        assert (await client.job(job["id"]))["status"] == "in_flight"
        await stream.close()


# Stalled readers


async def test_a_stalled_reader_keeps_its_jobs_and_slows_nobody(client: Client) -> None:
    stream, job = await stalled(client)
    other = await client.take(prefetch=10, queue="small")
    for _ in range(20):
        issued = await client.enqueue_many(10, queue="small")
        assert ids(await other.jobs(10)) == issued
        await client.succeed(*issued)
    client.site.clock.advance(60_000)
    assert await is_big(client, job, "in_flight")
    await stream.close()
    await until_big(client, job, "ready")


async def test_a_stalled_reader_may_end_in_any_way_too(client: Client) -> None:
    for how in WAYS_TO_END:
        stream, job = await stalled(client)
        await stream.end(how)
        await until_big(client, job, "ready")
        await stream.close()
        await client.delete(f"/jobs/{job}")


async def test_a_stalled_reader_is_given_nothing_more(client: Client) -> None:
    stream, _ = await stalled(client)
    more = await client.enqueue(queue="big")
    other = await client.take(queue="big")
    assert (await other.job())["id"] == more["id"]
    await stream.close()


async def test_a_reader_that_goes_on_after_a_stall_gets_its_frames(client: Client) -> None:
    stream, job = await stalled(client)
    small = await client.enqueue(queue="big", payload="small")
    buffer = bytearray()
    jobs: list[Job] = []
    while len(jobs) < 2:
        buffer += await stream.chunk()
        found, frame = cut_ndjson(buffer)
        if found and frame is not None:
            jobs.append(frame)
    assert ids(jobs) == [job, small["id"]]
    assert jobs[0]["payload"] == client.overflow()
    await stream.close()


async def test_heartbeats_are_dropped_while_the_client_does_not_read(client: Client) -> None:
    stream, _ = await stalled(client)
    for _ in range(50):
        client.site.clock.advance(HEARTBEAT_MS)
        await client.count()
    buffer = bytearray()
    frames: list[Frame] = []
    small = await client.enqueue(queue="big")
    while not frames or frames[-1] is None or frames[-1]["id"] != small["id"]:
        buffer += await stream.chunk()
        found, frame = cut_ndjson(buffer)
        while found:
            frames.append(frame)
            found, frame = cut_ndjson(buffer)
    assert frames.count(None) <= 2
    await stream.close()


@pytest.mark.settings(stall_timeout=60_000)
async def test_a_stream_that_stalls_too_long_is_ended(client: Client) -> None:
    stream, job = await stalled(client)
    client.site.clock.advance(59_000)
    await client.count()
    assert await is_big(client, job, "in_flight")
    # The limit runs from the last byte that went out; the server looks once a heartbeat.
    async with asyncio.timeout(PATIENCE_S):
        while not await is_big(client, job, "ready"):
            client.site.clock.advance(HEARTBEAT_MS)
            await pause()
    await stream.close()


@pytest.mark.settings(stall_timeout=60_000)
async def test_a_stream_that_reads_is_never_stalled(client: Client) -> None:
    job = await client.in_flight(payload=client.overflow())
    for _ in range(100):
        client.site.clock.advance(HEARTBEAT_MS)
        await client.count()
    assert await is_big(client, job["id"], "in_flight")


# A stopping server


async def test_a_stopping_server_ends_streams_cleanly_and_returns_their_jobs(
    client: Client,
) -> None:
    issued = await client.enqueue_many(3)
    stream = await client.take(prefetch=2)
    await stream.jobs(2)
    await client.site.stop()
    await stream.ended()
    await client.site.start()
    jobs = await client.jobs()
    assert ids(jobs) == issued
    assert {job["status"] for job in jobs} == {"ready"}


@pytest.mark.settings(drain=2_000)
async def test_a_draining_server_takes_acknowledgements_and_delivers_nothing(
    client: Client,
) -> None:
    first, second = await client.enqueue_many(2, retention={"completed_ms": 60_000})
    stream = await client.take(prefetch=1)
    await stream.job()
    stopping = asyncio.create_task(client.site.stop())
    await client.succeed(first)
    # Nothing is held any more: the server need not wait for the rest of the drain.
    async with asyncio.timeout(PATIENCE_S):
        await stopping
    await stream.ended()
    await client.site.start()
    assert (await client.job(first))["status"] == "completed"
    assert (await client.job(second))["status"] == "ready"
    client.site.clock.advance(2_000)


@pytest.mark.settings(drain=2_000)
async def test_the_drain_ends_when_its_time_is_up(client: Client) -> None:
    job = await client.in_flight()
    stopping = asyncio.create_task(client.site.stop())
    async with asyncio.timeout(PATIENCE_S):
        while not stopping.done():
            client.site.clock.advance(500)
            await pause()
    await client.site.start()
    assert (await client.job(job["id"]))["status"] == "ready"


async def test_waiting_streams_do_not_hold_up_a_stop(site: Site) -> None:
    async with Client(site, JSON) as client:
        streams = [await client.take() for _ in range(20)]
        await client.post("/jobs", new_job(queue="other", ready_at=site.now + 1_000))
        async with asyncio.timeout(PATIENCE_S):
            await site.stop()
        for stream in streams:
            await stream.ended()


async def test_a_stalled_stream_does_not_hold_up_a_stop(client: Client) -> None:
    stream, job = await stalled(client)
    async with asyncio.timeout(PATIENCE_S):
        await client.site.stop()
    await client.site.start()
    assert await is_big(client, job, "ready")
    await stream.close()
