"""The contents of a directory after a restart, and its owners."""

import asyncio

import pytest

from bench.ports import free_port

from .client import JSON, Client, as_read, ids
from .site import Site


async def test_a_restart_keeps_every_job_as_it_was(client: Client) -> None:
    options = {
        "retry_limit": 3,
        "backoff": {"exponent": 1.5, "base_ms": 1, "jitter_ms": 2},
        "retention": {"completed_ms": 60_000, "dead_ms": 60_000},
        "payload": {"deep": [1.5, "é", None, 2**64 - 1]},
        "priority": 7,
    }
    for state in ("scheduled", "ready", "completed", "dead"):
        await client.make(state, queue=state, unique_key=state, unique_while="exists", **options)
    await client.enqueue(payload="x" * 100_000)
    before = await client.jobs()
    history = (await client.get(f"/jobs/{before[3]['id']}/errors")).doc
    await client.site.restart()
    assert await client.jobs() == before
    assert (await client.get(f"/jobs/{before[3]['id']}/errors")).doc == history
    assert await client.count() == 5
    expected = ["completed", "dead", "default", "ready", "scheduled"]
    assert (await client.get("/queues")).doc == {"queues": expected}


async def test_a_restart_returns_jobs_in_flight(client: Client) -> None:
    taken = await client.in_flight()
    client.site.clock.advance(5)
    await client.site.restart()
    assert await client.job(taken["id"]) == as_read(taken) | {"status": "ready"}
    stream = await client.take()
    assert (await stream.job())["id"] == taken["id"]


async def test_a_crash_loses_nothing_acknowledged_and_returns_jobs_in_flight(
    client: Client,
) -> None:
    states = ("scheduled", "ready", "in_flight", "completed", "dead")
    made = {state: await client.make(state, queue=state) for state in states}
    big = await client.enqueue(payload="x" * 100_000)
    gone = await client.make("in_flight", queue="gone", retention={"completed_ms": 0})
    await client.succeed(gone)
    before = {job["id"]: job for job in await client.jobs()}
    await client.site.crash()
    returned = before[made["in_flight"]] | {"status": "ready"}
    assert await client.jobs() == [*(before | {returned["id"]: returned}).values()]
    assert big["id"] in before
    assert await client.count(status="ready") == 3
    assert await client.count(status="in_flight") == 0
    assert len((await client.get(f"/jobs/{made['dead']}/errors")).doc["errors"]) == 1


async def test_order_survives_a_restart(client: Client) -> None:
    low, high = await client.enqueue(priority=2), await client.enqueue(priority=1)
    await client.site.restart()
    newer = await client.enqueue(priority=1)
    stream = await client.take(prefetch=0)
    assert ids(await stream.jobs(3)) == [high["id"], newer["id"], low["id"]]


async def test_what_fell_due_while_the_server_was_down_happens_at_its_start(
    client: Client,
) -> None:
    due = await client.make("scheduled")
    await client.make("dead", queue="other")
    await client.site.stop()
    client.site.clock.advance(60_000)
    await client.site.start()
    assert (await client.until(due, status="ready"))["queue"] == "default"
    assert ids(await client.jobs()) == [due]


async def test_deletions_and_acknowledgements_survive_a_restart(client: Client) -> None:
    gone = await client.enqueue_many(2)
    await client.delete(f"/jobs/{gone[0]}")
    stream = await client.take()
    assert (await stream.job())["id"] == gone[1]
    await client.succeed(gone[1])
    await client.site.restart()
    assert await client.count() == 0


async def test_many_restarts_in_a_row_lose_nothing(client: Client) -> None:
    issued = []
    for number in range(5):
        issued += await client.enqueue_many(20, queue=f"q{number}")
        await client.site.restart()
    assert ids(await client.jobs(limit=2_000)) == issued


async def test_a_second_server_on_the_directory_is_refused(site: Site) -> None:
    second = site.build()
    with pytest.raises(Exception, match=r"(?i)another|already|in use|lock"):
        await second.start()
    async with Client(site, JSON) as client:
        await client.enqueue()
    await site.stop()
    await site.start()


@pytest.mark.settings(port=lambda _: free_port())
async def test_a_stopped_server_leaves_nothing_behind_on_the_port(site: Site) -> None:
    port = site.port
    await site.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.settings(default_commit_mode="buffered")
async def test_buffered_mode_keeps_everything_over_a_restart_too(client: Client) -> None:
    issued = await client.enqueue_many(10)
    await client.site.restart()
    assert ids(await client.jobs()) == issued
