"""Waiting for a job to be finished, alone or together with its enqueue."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from .client import JSON, Client, Doc, Reply, new_job
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S, TakeStream, pause

LONG_MS = 30_000


async def until_waiting(client: Client, count: int) -> None:
    """Let the server get to the point where so many wait."""
    async with asyncio.timeout(PATIENCE_S):
        while len(client.site.server.engine.waiters) != count:
            await pause()


@asynccontextmanager
async def waiting(client: Client, *ids: str) -> AsyncIterator[list[asyncio.Task[Reply]]]:
    """Requests that wait for these jobs."""
    tasks = [asyncio.create_task(client.get(f"/jobs/{id}/result", wait_ms=LONG_MS)) for id in ids]
    await until_waiting(client, len(ids))
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def call(client: Client, wait_ms: int = LONG_MS, **fields: Any) -> Reply:
    """Store a job and wait for it."""
    return await client.post(f"/jobs?wait_ms={wait_ms}", new_job(**fields))


async def taken(stream: TakeStream, client: Client, **success: Any) -> str:
    """Take the next job and acknowledge it."""
    job = await stream.job()
    assert (await client.post(f"/jobs/{job['id']}/success", success)).status == 204
    return str(job["id"])


@pytest.mark.parametrize("keep_ms", [0, 60_000])
async def test_whoever_waits_gets_the_result_even_if_it_is_not_kept(
    client: Client, keep_ms: int
) -> None:
    job = await client.in_flight(retention={"completed_ms": keep_ms})
    async with waiting(client, job["id"], job["id"]) as waiters:
        await client.post(f"/jobs/{job['id']}/success", {"result": "x" * 100_000})
        for waiter in waiters:
            reply = await waiter
            assert reply.status == 200
            assert reply.doc == {"status": "completed", "result": "x" * 100_000}
    assert await client.exists(job["id"]) is (keep_ms > 0)
    late = await client.get(f"/jobs/{job['id']}/result")
    assert late.status == (200 if keep_ms else 404)


async def test_a_result_that_is_null_ends_the_wait_and_so_does_none(client: Client) -> None:
    for body, expected in [
        ({"result": None}, {"status": "completed", "result": None}),
        ({}, {"status": "completed"}),
    ]:
        job = await client.in_flight(queue=repr(len(body)))
        async with waiting(client, job["id"]) as (waiter,):
            await client.post(f"/jobs/{job['id']}/success", body)
            assert (await waiter).doc == expected


@pytest.mark.parametrize("keep_ms", [0, 60_000])
async def test_a_death_ends_the_wait_with_its_error_and_a_retry_does_not(
    client: Client, keep_ms: int
) -> None:
    job = await client.enqueue(retention={"dead_ms": keep_ms}, backoff=NO_BACKOFF)
    await (await client.take(headers={"worker-id": "ann"})).job()
    async with waiting(client, job["id"]) as (waiter,):
        await client.fail(job["id"], message="first")
        client.site.clock.advance(1_000)
        await client.until(job["id"], status="in_flight")
        assert not waiter.done()
        await client.fail(job["id"], message="last", error_type="E", kill=True)
        reply = await waiter
    assert (reply.status, reply.doc["status"]) == (200, "dead")
    error = reply.doc["error"]
    assert (error["message"], error["error_type"], error["attempt"]) == ("last", "E", 2)
    assert error["worker"] == "ann"
    late = await client.get(f"/jobs/{job['id']}/result")
    assert (late.status, late.doc) == ((200, reply.doc) if keep_ms else (404, late.doc))


NO_BACKOFF = {"exponent": 0.0, "base_ms": 0, "jitter_ms": 0}


async def test_a_cancellation_ends_the_wait_with_410(client: Client) -> None:
    for how in ({}, {"dead_ms": 0}):
        job = await client.enqueue(ready_at=client.site.now + 60_000, retention=how)
        async with waiting(client, job["id"]) as (waiter,):
            assert (await client.send("POST", f"/jobs/{job['id']}/cancel")).status == 200
            reply = await waiter
        assert (reply.status, reply.headers["zq-error"]) == (410, "job_cancelled")
        assert reply.doc["status"] == "cancelled"
        assert reply.doc["error"]
    kept = await client.make("cancelled")
    assert (await client.get(f"/jobs/{kept}/result")).status == 410


async def test_a_sweep_that_cancels_or_deletes_ends_the_wait(client: Client) -> None:
    for method, target, status in [
        ("POST", "/jobs/cancel", 410),
        ("DELETE", "/jobs?type=test", 404),
    ]:
        job = await client.enqueue()
        async with waiting(client, job["id"]) as (waiter,):
            assert (await client.send(method, target)).status == 200
            assert (await waiter).status == status


@pytest.mark.parametrize("target", ["/jobs/{id}", "/jobs"])
async def test_a_deletion_ends_the_wait_with_404(client: Client, target: str) -> None:
    job = await client.enqueue()
    async with waiting(client, job["id"]) as (waiter,):
        await client.delete(target.replace("{id}", job["id"]))
        reply = await waiter
    assert (reply.status, reply.headers["zq-error"]) == (404, "job_not_found")


@pytest.mark.parametrize("status", ["scheduled", "ready", "in_flight"])
async def test_the_state_is_told_when_the_time_is_up_or_there_is_none(
    client: Client, status: str
) -> None:
    job_id = await client.make(status)
    for query in ({}, {"wait_ms": 0}):
        reply = await client.get(f"/jobs/{job_id}/result", **query)
        assert (reply.status, reply.doc) == (202, {"status": status})
    async with waiting(client, job_id) as (waiter,):
        client.site.clock.advance(LONG_MS)
        reply = await waiter
    # A job that was scheduled for later may be due by now.
    assert reply.status == 202
    assert reply.doc["status"] in (status, "ready")
    assert len(client.site.server.engine.waiters) == 0


async def test_what_does_not_exist_is_404_at_once(client: Client) -> None:
    gone = await client.make("in_flight", retention={"completed_ms": 0})
    await client.succeed(gone)
    for id in (gone, "unknown", "0" * 26):
        reply = await client.get(f"/jobs/{id}/result", wait_ms=LONG_MS)
        assert (reply.status, reply.headers["zq-error"]) == (404, "job_not_found")


async def test_a_bad_time_to_wait_is_400_and_stores_nothing(client: Client) -> None:
    job = await client.enqueue()
    for text in ("-1", "x", "1.5", "30001", "1e3", "99999999999999999999"):
        assert (await client.get(f"/jobs/{job['id']}/result", wait_ms=text)).status == 400, text
        assert (await client.post(f"/jobs?wait_ms={text}", new_job())).status == 400, text
        assert await client.count() == 1, text
    assert (await client.post("/jobs?wait=1", new_job())).status == 400
    assert await client.count() == 1


# Storing and waiting


async def test_a_job_is_stored_and_waited_for_by_one_request(client: Client) -> None:
    stream = await client.take()
    request = asyncio.create_task(call(client, payload=20))
    job_id = await taken(stream, client, result=40)
    reply = await request
    assert reply.status == 200
    assert (reply.doc["status"], reply.doc["result"]) == ("completed", 40)
    stored = reply.doc["job"]
    assert (stored["id"], stored["duplicate"], stored["status"]) == (job_id, False, "ready")
    assert not await client.exists(job_id)


async def test_a_call_that_is_not_finished_in_time_is_202_and_goes_on(client: Client) -> None:
    at_once = await call(client, wait_ms=0, queue="q")
    assert (at_once.status, at_once.doc["status"]) == (202, "ready")
    request = asyncio.create_task(call(client, queue="q"))
    await until_waiting(client, 1)
    client.site.clock.advance(LONG_MS)
    reply = await request
    assert (reply.status, reply.doc["status"]) == (202, "ready")
    assert (await client.job(reply.doc["job"]["id"]))["status"] == "ready"


async def test_a_duplicate_joins_the_job_that_exists(client: Client) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "exists", "retention": {"completed_ms": 0}}
    calls = [asyncio.create_task(call(client, payload=n, **unique)) for n in range(3)]
    await until_waiting(client, 3)
    await client.until_count(1)
    stream = await client.take()
    job_id = await taken(stream, client, result="once")
    replies = await asyncio.gather(*calls)
    assert {reply.status for reply in replies} == {200}
    assert [reply.doc["result"] for reply in replies] == ["once"] * 3
    assert {reply.doc["job"]["id"] for reply in replies} == {job_id}
    assert sorted(reply.doc["job"]["duplicate"] for reply in replies) == [False, True, True]


@pytest.mark.parametrize("size", [1, 1_000])
async def test_a_duplicate_of_a_finished_job_has_its_result_at_once(
    client: Client, size: int
) -> None:
    unique: Doc = {
        "unique_key": "k",
        "unique_while": "exists",
        "retention": {"completed_ms": 60_000},
    }
    job = await client.in_flight(**unique)
    await client.post(f"/jobs/{job['id']}/success", {"result": "x" * size})
    reply = await call(client, payload=999, **unique)
    assert (reply.status, reply.doc["result"]) == (200, "x" * size)
    plain = await client.post("/jobs", new_job(**unique))
    assert (plain.status, plain.doc["duplicate"], plain.doc["result"]) == (200, True, "x" * size)
    bulk = await client.post("/jobs/bulk", {"jobs": [new_job(**unique)]})
    assert bulk.doc["jobs"][0]["result"] == "x" * size


async def test_a_duplicate_of_a_dead_job_has_its_error_at_once(client: Client) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "exists"}
    job = await client.in_flight(**unique)
    await client.fail(job["id"], message="boom", kill=True)
    reply = await call(client, **unique)
    assert (reply.status, reply.doc["status"]) == (200, "dead")
    assert reply.doc["error"]["message"] == "boom"


async def test_a_call_whose_job_is_cancelled_is_410_with_the_job(client: Client) -> None:
    request = asyncio.create_task(call(client))
    await client.until_count(1)
    assert (await client.send("POST", "/jobs/cancel")).doc == {"cancelled": 1}
    reply = await request
    assert (reply.status, reply.doc["status"]) == (410, "cancelled")
    assert (await client.job(reply.doc["job"]["id"]))["status"] == "cancelled"


# What is left behind


async def test_a_client_that_goes_away_leaves_nothing_behind(site: Site) -> None:
    async with Client(site, JSON) as client:
        job = await client.enqueue(queue="other")
        body = json.dumps(new_job()).encode()
        get = f"GET /jobs/{job['id']}/result?wait_ms=30000 HTTP/1.1\r\nHost: q\r\n\r\n".encode()
        post = b"POST /jobs?wait_ms=30000 HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\n\r\n"
        connections = []
        for number in range(20):
            connection = await RawConnection.open(site.port)
            await connection.send(get if number % 2 else post % len(body) + body)
            connections.append(connection)
        await until_waiting(client, 20)
        for number, connection in enumerate(connections):
            await (connection.reset() if number % 3 else connection.close())
        await until_waiting(client, 0)
        assert site.server.engine.waiters.is_empty
        # What they stored stays stored.
        await client.until_count(11)


async def test_a_server_that_stops_answers_202(site: Site) -> None:
    async with Client(site, JSON) as client:
        job = await client.enqueue()
        requests = [
            asyncio.create_task(client.get(f"/jobs/{job['id']}/result", wait_ms=LONG_MS)),
            asyncio.create_task(call(client)),
        ]
        await until_waiting(client, 2)
        await site.stop()
        for request in requests:
            reply = await request
            assert (reply.status, reply.doc["status"]) == (202, "ready")
    await site.start()
    async with Client(site, JSON) as client:
        assert await client.count(status="ready") == 2
