"""What a server refuses when something is full or takes too long: an error, advice, no harm."""

import asyncio
import json

import pytest

from .client import Client, Reply, ids, new_job
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S

KIB = 1024


def assert_try_again(reply: Reply) -> None:
    """A 503 that says what is wrong and when to come back."""
    assert reply.status == 503, reply.doc
    assert reply.error
    assert int(reply.headers["retry-after"]) >= 1


async def announced(site: Site, size: int) -> RawConnection:
    """A connection whose enqueue of `size` bytes has begun: its body is still to come."""
    connection = await RawConnection.open(site.port)
    head = b"POST /jobs HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    await connection.send(head % size)
    assert (await connection.reply()).status == 100
    return connection


async def test_a_full_disk_refuses_enqueues_but_takes_acknowledgements(client: Client) -> None:
    done, failed = await client.enqueue_many(2)
    await client.site.restart(disk_reserve=2**52)
    for target, doc in [("/jobs", new_job()), ("/jobs/bulk", {"jobs": [new_job()]})]:
        reply = await client.post(target, doc)
        assert (reply.status, reply.media_type) == (507, client.wire.media_type)
        assert reply.error
    stream = await client.take(prefetch=2)
    assert ids(await stream.jobs(2)) == [done, failed]
    await client.succeed(done)
    await client.fail(failed, kill=True)
    assert ids(await client.jobs()) == [failed]


@pytest.mark.settings(max_inbox_jobs=100)
async def test_a_full_inbox_refuses_enqueues_with_503_and_advice(client: Client) -> None:
    bulk = {"jobs": [new_job()] * 90}
    replies = await asyncio.gather(*(client.post("/jobs/bulk", bulk) for _ in range(30)))
    refused = [reply for reply in replies if reply.status == 503]
    stored = [reply for reply in replies if reply.status == 201]
    assert len(refused) + len(stored) == 30
    assert stored
    assert refused
    for reply in refused:
        assert_try_again(reply)
    assert await client.count() == 90 * len(stored)
    assert (await client.post("/jobs/bulk", bulk)).status == 201


@pytest.mark.settings(max_inbox_jobs=20)
async def test_acknowledgements_pass_where_enqueues_are_refused(client: Client) -> None:
    held = await client.enqueue_many(10, queue="held")
    stream = await client.take(prefetch=0, queue="held")
    await stream.jobs(len(held))
    bulk = {"jobs": [new_job()] * 20}
    enqueues = [client.post("/jobs/bulk", bulk) for _ in range(20)]
    acknowledgements = [client.post("/jobs/success", {"ids": [job_id]}) for job_id in held]
    replies = await asyncio.gather(*enqueues, *acknowledgements)
    assert {reply.status for reply in replies[:20]} == {201, 503}
    assert {reply.status for reply in replies[20:]} == {204}


@pytest.mark.settings(max_body=100 * KIB, max_inbox_bytes=100 * KIB)
async def test_bodies_in_memory_are_bounded_but_acknowledgements_pass(client: Client) -> None:
    held = await client.in_flight()
    body = json.dumps(new_job(payload="x" * 90 * KIB)).encode()
    waiting = await announced(client.site, len(body))
    assert_try_again(await client.post("/jobs", new_job(payload="x" * 20 * KIB)))
    await client.succeed(held["id"])
    await waiting.send(body)
    assert (await waiting.reply()).status == 201
    await waiting.close()
    assert (await client.post("/jobs", new_job(payload="x" * 20 * KIB))).status == 201


@pytest.mark.settings(max_body=100 * KIB, max_inbox_bytes=100 * KIB)
async def test_a_body_that_is_cut_off_gives_its_memory_back(client: Client) -> None:
    connection = await announced(client.site, 90 * KIB)
    await connection.send(b"x" * 10 * KIB)
    await connection.reset()
    async with asyncio.timeout(PATIENCE_S):
        while (await client.post("/jobs", new_job(payload="x" * 90 * KIB))).status != 201:
            pass
    assert await client.count() == 1


@pytest.mark.settings(read_timeout=1)
async def test_a_read_that_takes_too_long_is_503_with_advice(client: Client) -> None:
    for _ in range(6):
        await client.enqueue_many(10_000)
    # No index serves this: every row is looked at, which takes any machine more than a millisecond.
    assert_try_again(await client.get("/jobs", attempts="7"))
    await client.site.restart(read_timeout=20_000)
    assert (await client.get("/jobs", attempts="7")).status == 200
