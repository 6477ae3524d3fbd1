"""The server's memory grows neither with past jobs nor with waiting jobs."""

import asyncio
from pathlib import Path

from conformance.client import Client, new_job, to_json
from conformance.raw import RawConnection
from conformance.streams import PATIENCE_S
from tiers import sizes

from .server import ServerProcess, running

NOISE_MIB = 25
"""What allocators may make of the same load, done again. An object for each job is more."""

SMALL_CACHE = ("--cache-size", "1MiB")
"""Pages of the database would fill memory up to a bound of their own, and hide the rest."""


def resident(server: ServerProcess, kind: str = "VmRSS") -> float:
    """Memory that the server has now, or had at most (`VmHWM`), in MiB."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(f"{kind}:"))
    return int(line.split()[1]) / 1024


async def test_payloads_that_are_gone_take_no_memory(tmp_path: Path) -> None:
    async with running(tmp_path, *SMALL_CACHE) as server, server.client() as client:
        payload = "x" * 50_000  # 39 MiB in all

        async def bulk(count: int) -> None:
            jobs = [new_job(payload=payload)] * count
            assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201
            await client.delete("/jobs")

        await bulk(40)
        before = resident(server)
        # As many jobs a transaction as there are statements that insert them.
        for count in range(1, 41):
            await bulk(count)
        assert resident(server) < before + NOISE_MIB


BULK = 10_000


async def fill(client: Client, count: int) -> None:
    """Store many jobs, a bulk at a time."""
    jobs = [new_job(payload={"n": 123, "user": "u-000123"})] * BULK
    for _ in range(count // BULK):
        assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201


@sizes("count", 100_000, 1_000_000)
async def test_jobs_that_wait_take_no_memory(count: int, tmp_path: Path) -> None:
    async with running(tmp_path, *SMALL_CACHE) as server, server.client() as client:
        await fill(client, 5 * BULK)
        before = resident(server)
        await fill(client, count)
        assert await client.count() == 5 * BULK + count
        assert resident(server) < before + NOISE_MIB


@sizes("count", 10, 600)
async def test_bulks_beside_workers_leave_no_memory(count: int, tmp_path: Path) -> None:
    async def work(server: ServerProcess) -> None:
        async with server.client() as client:
            stream = await client.take(prefetch=1_000)
            while True:
                await client.succeed(*[job["id"] for job in await stream.jobs(500)])

    async with running(tmp_path, *SMALL_CACHE) as server, server.client() as client:
        workers = [asyncio.create_task(work(server)) for _ in range(2)]
        await fill(client, 10 * BULK)
        before = resident(server)
        await fill(client, count * BULK)
        after = resident(server)
        for worker in workers:
            assert not worker.done()
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert after < before + NOISE_MIB


PAGE = b"GET /jobs?limit=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLAIM = to_json({"holder": "me", "max": 1_000})
CLAIM_HEAD = (
    "POST /queues/default/claim HTTP/1.1\r\nHost: localhost\r\n"
    f"Content-Length: {len(CLAIM)}\r\n\r\n"
)


async def test_large_answers_leave_no_memory(tmp_path: Path) -> None:
    flags = (*SMALL_CACHE, "--max-answer-bytes", "64MiB")
    async with running(tmp_path, *flags) as server, server.client() as client:
        for _ in range(40):
            await client.enqueue(payload="x" * 1_000_000)

        async def unread(request: bytes) -> RawConnection:
            connection = await RawConnection.open(server.port, receive_buffer=4096)
            await connection.send(request)
            assert (await connection.head())[0] in (200, 503)
            return connection

        async def read() -> RawConnection:
            connection = await RawConnection.open(server.port)
            await connection.send(PAGE)
            assert (await connection.reply()).status == 200
            return connection

        async def is_back() -> None:
            async with asyncio.timeout(PATIENCE_S):
                while resident(server) > before + NOISE_MIB:
                    await client.count()

        await (await read()).close()
        before = resident(server)
        claim = CLAIM_HEAD.encode() + CLAIM
        # Two of them would be too large already.
        waiting = await asyncio.gather(*[unread(PAGE) for _ in range(5)])
        waiting += await asyncio.gather(*[unread(claim) for _ in range(5)])
        # Each is held once, beside what makes the next one.
        assert resident(server, "VmHWM") < before + 64 + 4 * NOISE_MIB
        for connection in waiting:
            await connection.close()
        await is_back()
        # A connection that rests does not hold what it has sent.
        resting = [await read() for _ in range(4)]
        await is_back()
        for connection in resting:
            await connection.close()
