"""Health, version and reset."""

import asyncio

import zq

from .client import Client


async def test_health_is_ok_and_names_the_commit_mode(client: Client) -> None:
    reply = await client.get("/health")
    assert reply.status == 200
    assert reply.doc["status"] == "ok"
    assert "fsync" in reply.doc.values()
    assert reply.doc["flushed_by"] in ("linux-aio", "io-uring", "thread", "postgresql")
    await client.site.restart(default_commit_mode="buffered")
    assert "buffered" in (await client.get("/health")).doc.values()


async def test_version_is_the_level_of_the_api_beside_that_of_zq(client: Client) -> None:
    reply = await client.get("/version")
    assert reply.status == 200
    assert reply.doc["version"] == "0.7.0"
    assert reply.doc["zq"] == zq.__version__


async def test_reset_wipes_everything_and_goes_on(client: Client) -> None:
    for state in ("scheduled", "ready", "in_flight", "completed", "dead"):
        await client.make(state, queue=state, unique_key=state, unique_while="exists")
    dead = (await client.jobs(status="dead"))[0]["id"]
    reply = await client.send("POST", "/reset")
    assert (reply.status, reply.body) == (204, b"")
    assert await client.count() == 0
    assert (await client.get("/queues")).doc == {"queues": []}
    assert (await client.get(f"/jobs/{dead}/errors")).status == 404
    for state in ("ready", "dead"):
        await client.enqueue(unique_key=state, unique_while="exists")
    assert await client.count() == 2


async def test_reset_takes_any_body_or_none(client: Client) -> None:
    for body, content_type in [
        (None, None),
        (client.wire.encode({}), client.wire.media_type),
        (b"{", "application/json"),
        (b"x", "text/plain"),
    ]:
        reply = await client.send("POST", "/reset", body, {"content-type": content_type})
        assert reply.status == 204


async def test_a_stream_outlives_a_reset(client: Client) -> None:
    stream = await client.take(prefetch=1)
    before = await client.enqueue()
    assert (await stream.job())["id"] == before["id"]
    assert (await client.send("POST", "/reset")).status == 204
    assert (await client.send("POST", f"/jobs/{before['id']}/success")).status == 404
    after = await client.enqueue()
    assert (await stream.job())["id"] == after["id"]


async def test_a_scheduled_job_that_was_reset_never_arrives(client: Client) -> None:
    stream = await client.take()
    await client.enqueue(ready_at=client.site.now + 1_000)
    assert (await client.send("POST", "/reset")).status == 204
    client.site.clock.advance(2_000)
    await client.heartbeat(stream)
    assert await client.count() == 0


async def test_what_was_answered_early_is_flushed_when_nothing_follows(client: Client) -> None:
    await client.site.restart(flush_interval=500, upkeep_interval=3_600_000)
    synced = asyncio.Event()
    client.site.server.engine.when_synced.append(synced.set)
    await client.enqueue()
    async with asyncio.timeout(60):
        while not synced.is_set():
            client.site.clock.advance(100)
            await asyncio.sleep(0.01)
