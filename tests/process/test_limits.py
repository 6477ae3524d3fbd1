"""At its limits the server says so, and still accepts acknowledgements."""

import asyncio
import signal
import sqlite3
from pathlib import Path

from conformance.client import ids, new_job, to_json
from conformance.raw import RawConnection, RawReply
from conformance.streams import PATIENCE_S, pause

from .server import running

PRODUCERS = 200
MIB = 1024 * 1024


def assert_try_again(status: int, retry_after: str, error: str, setting: str) -> None:
    """An answer that makes every client come back later, and its owner know which limit it is."""
    assert status == 503
    assert int(retry_after) >= 1
    assert setting in error


def request(body: bytes) -> bytes:
    """An enqueue as it stands on the wire."""
    head = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_200_producers_beyond_the_inbox_are_told_to_wait(tmp_path: Path) -> None:
    new = request(to_json(new_job(queue="new")))
    replies: list[RawReply] = []
    refused, done = asyncio.Event(), asyncio.Event()

    async def produce(port: int) -> None:
        async with await RawConnection.open(port) as connection:
            while not done.is_set():
                await connection.send(new)
                reply = await connection.reply()
                replies.append(reply)
                if reply.status != 201:
                    refused.set()

    async with running(tmp_path, "--max-inbox-jobs", "20") as server, server.client() as client:
        await client.enqueue_many(30)
        stream = await client.take(prefetch=30, queue="default")
        held = ids(await stream.jobs(30))
        producers = [asyncio.create_task(produce(server.port)) for _ in range(PRODUCERS)]
        async with asyncio.timeout(PATIENCE_S):
            await refused.wait()
        for job in held[:5]:
            assert (await client.send("POST", f"/jobs/{job}/success")).status == 204
            await client.fail(held.pop(), kill=True)
        await client.succeed(*held[5:])
        done.set()
        await asyncio.gather(*producers)

        stored = [reply.doc["id"] for reply in replies if reply.status == 201]
        for reply in replies:
            if reply.status != 201:
                retry_after = reply.headers["retry-after"]
                assert_try_again(reply.status, retry_after, reply.doc["error"], "--max-inbox-jobs")
        # What was refused is not stored, and nothing else has been lost.
        assert await client.count(queue="new") == len(stored) == len(set(stored))


async def test_200_slow_uploads_beyond_the_memory_for_bodies_are_told_to_wait(
    tmp_path: Path,
) -> None:
    body = to_json(new_job(queue="new", payload="x" * 10_000))
    upload_request = request(body)
    most = 15
    flags = ("--max-body", str(len(body)), "--max-inbox-bytes", str(most * len(body)))

    async with running(tmp_path, *flags) as server, server.client() as client:
        await client.enqueue_many(30)
        stream = await client.take(prefetch=30, queue="default")
        held = ids(await stream.jobs(30))

        uploads = [await RawConnection.open(server.port) for _ in range(PRODUCERS)]
        replies: dict[asyncio.Task[RawReply], RawConnection] = {}
        for upload in uploads:
            await upload.send(upload_request[:-10_000])
            replies[asyncio.create_task(upload.reply())] = upload
        async with asyncio.timeout(PATIENCE_S):
            while sum(reply.done() for reply in replies) < PRODUCERS - most:
                await pause()
        # Whoever announced a body first has the room; nobody else is let in.
        refused = [reply.result() for reply in replies if reply.done()]
        assert len(refused) == PRODUCERS - most
        for reply in refused:
            retry_after = reply.headers["retry-after"]
            assert_try_again(reply.status, retry_after, reply.doc["error"], "--max-inbox-bytes")

        assert (await client.send("POST", f"/jobs/{held[0]}/success")).status == 204
        await client.fail(held[1], kill=True)
        await client.succeed(*held[2:])

        waiting = [reply for reply in replies if not reply.done()]
        for task in waiting:
            await replies[task].send(upload_request[-10_000:])
        assert [(await task).status for task in waiting] == [201] * most
        assert await client.count(queue="new") == most
        await client.enqueue(queue="new")  # the memory is free again
        for upload in uploads:
            await upload.close()


async def test_below_the_disk_reserve_only_new_jobs_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        jobs = await client.enqueue_many(4)
        await server.kill()

    more_than_any_disk = "1000000GiB"
    async with (
        running(tmp_path, "--disk-reserve", more_than_any_disk) as server,
        server.client() as client,
    ):
        for target, body in (("/jobs", new_job()), ("/jobs/bulk", {"jobs": [new_job()] * 2})):
            reply = await client.post(target, body)
            assert reply.status == 507
            assert "--disk-reserve" in reply.error
        stream = await client.take(prefetch=4)
        assert ids(await stream.jobs(4)) == jobs
        assert (await client.send("POST", f"/jobs/{jobs[0]}/success")).status == 204
        await client.succeed(jobs[1])
        await client.fail(jobs[2])
        await client.change(jobs[3], priority=1)
        assert await client.count() == 2
        assert (await client.delete("/jobs")).doc == {"deleted": 2}


async def test_a_reader_that_pins_the_log_stops_enqueues_and_not_acknowledgements(
    tmp_path: Path,
) -> None:
    limit = 8 * MIB
    wal = tmp_path / "zq.db-wal"
    large = new_job(queue="large", payload="x" * MIB)
    async with (
        running(tmp_path, "--max-wal", str(limit), "--heartbeat-interval", "1s") as server,
        server.client() as client,
    ):
        await client.enqueue_many(3)
        stream = await client.take(prefetch=3, queue="default")
        done, *others = ids(await stream.jobs(3))
        reader = sqlite3.connect(tmp_path / "zq.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchone()

        replies = [await client.post("/jobs", large)]
        while replies[-1].status == 201:
            replies.append(await client.post("/jobs", large))
        refused = replies[-1]
        assert_try_again(refused.status, refused.headers["retry-after"], refused.error, "--max-wal")
        assert limit < wal.stat().st_size < 4 * limit
        cause = (await client.get("/health")).doc["enqueues_refused"]
        assert cause == {"code": "wal_full", "error": refused.error}
        page = (await client.get("/metrics")).body.decode()
        assert "\nzq_accepting_enqueues 0.0\n" in page
        assert '\nzq_refusals_total{reason="wal_full"} 1.0\n' in page

        assert (await client.send("POST", f"/jobs/{done}/success")).status == 204
        await client.succeed(*others)
        assert (await client.post("/jobs", new_job())).status == 503

        # Until nothing at all is left to do: then only the limit itself can have it looked at.
        for _ in range(3):
            while await stream.frame() is not None:
                pass
        reader.close()
        async with asyncio.timeout(PATIENCE_S):
            while (reply := await client.post("/jobs", large)).status == 503:
                await pause()
        assert reply.status == 201
        assert wal.stat().st_size <= limit
        assert "enqueues_refused" not in (await client.get("/health")).doc
        assert await client.count(queue="large") == len(replies)
        await server.logged("the write-ahead log is over --max-wal: new jobs are refused")
        await server.logged("the write-ahead log is small again")


async def test_without_a_reader_large_jobs_never_reach_the_limit_of_the_log(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, "--max-wal", "8MiB") as server, server.client() as client:
        for _ in range(30):
            await client.enqueue(payload="x" * MIB)


async def test_connections_beyond_the_limit_are_answered_and_closed(tmp_path: Path) -> None:
    flags = ("--max-connections", "20")
    async with running(tmp_path, *flags) as server:
        # One over the limit is answered if it speaks within a second: all have when they are met.
        server.signal(signal.SIGSTOP)
        connections = [await RawConnection.open(server.port) for _ in range(80)]
        for connection in connections:
            await connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.signal(signal.SIGCONT)
        replies = [await connection.reply() for connection in connections]
        assert [reply.status for reply in replies] == [200] * 20 + [503] * 60
        for reply in replies[20:]:
            retry_after = reply.headers["retry-after"]
            assert_try_again(reply.status, retry_after, reply.doc["error"], "--max-connections")
        for connection in connections:
            await connection.close()
        async with server.client() as client, asyncio.timeout(PATIENCE_S):
            while (await client.get("/health")).status != 200:
                await pause()
        line = await server.logged("connections refused")
        assert line["fields"]["limit"] == "--max-connections"


async def test_a_connection_that_says_nothing_ends(tmp_path: Path) -> None:
    async with running(tmp_path, "--header-timeout", "500ms", "--body-timeout", "500ms") as server:
        # The time of a head begins when its connection is met: what there is of it has come then.
        server.signal(signal.SIGSTOP)
        silent = await RawConnection.open(server.port)
        half = await RawConnection.open(server.port)
        await half.send(b"GET /health HTTP/1.1\r\nHost:")
        bodiless = await RawConnection.open(server.port)
        await bodiless.send(request(to_json(new_job()))[:-1])
        server.signal(signal.SIGCONT)
        assert await silent.rest() == b""
        for connection in (half, bodiless):
            assert (await connection.reply()).status == 408
        for connection in (silent, half, bodiless):
            await connection.close()


async def test_the_limit_on_descriptors_follows_that_on_connections(tmp_path: Path) -> None:
    def soft_limit(pid: int) -> int:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Max open files")).split()[3])

    few = ("prlimit", "--nofile=100:2000")
    async with running(tmp_path / "1", "--max-connections", "1500", before=few) as server:
        assert 1500 < soft_limit(server.pid) <= 2000
        assert [said for said in server.messages if "descriptors" in said] == []
    async with running(tmp_path / "2", "--max-connections", "2000", before=few) as server:
        assert soft_limit(server.pid) == 2000
        assert server.messages[0].startswith("this process may have 2000 descriptors, too few for")
