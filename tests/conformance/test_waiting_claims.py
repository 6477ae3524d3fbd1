"""Claims that wait for jobs, and what keeps jobs from them."""

import asyncio

import pytest

from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE

from .claims import claim, set_queue, until_claiming
from .client import Client, ids
from .site import Site


async def test_a_claim_waits_for_the_next_job(client: Client) -> None:
    waiting = [asyncio.create_task(claim(client, max=5, wait_ms=30_000)) for _ in range(3)]
    await until_claiming(client, 3)
    other = await client.enqueue(queue="other")
    issued = await client.enqueue_many(3)
    found = [ids(await task) for task in waiting]
    assert sorted(found) == [[id] for id in issued]
    await until_claiming(client, 0)
    assert (await client.job(other["id"]))["status"] == "ready"


async def test_a_claim_in_vain_is_an_empty_list_once_its_time_is_up(client: Client) -> None:
    assert await claim(client) == []
    waiting = asyncio.create_task(claim(client, wait_ms=10_000))
    await until_claiming(client, 1)
    client.site.clock.advance(9_999)
    await client.count()
    assert not waiting.done()
    client.site.clock.advance(1)
    assert await waiting == []
    job = await client.enqueue()
    assert (await client.job(job["id"]))["status"] == "ready"


async def test_a_wait_that_ends_before_its_first_tick_ends_with_what_that_tick_claims(
    client: Client,
) -> None:
    await client.enqueue(priority=7)
    work = client.site.server.services.work
    with work.claimer("default", EVERYWHERE, 1, Terms(), 30_000) as claimer:
        # The client has finished sending, or its time is up: no tick has run since.
        work.hurry(claimer)
        (claimed,) = await claimer.take()
    assert claimed.priority == 7
    with work.claimer("default", EVERYWHERE, 1, Terms(), 30_000) as claimer:
        work.hurry(claimer)
        assert await claimer.take() == []


async def test_streams_and_claims_take_turns(client: Client) -> None:
    stream = await client.take(queue="default", prefetch=2)
    waiting = asyncio.create_task(claim(client, max=2, wait_ms=30_000))
    await until_claiming(client, 1)
    issued = await client.enqueue_many(4)
    streamed, claimed = ids(await stream.jobs(2)), ids(await waiting)
    assert sorted(streamed + claimed) == issued


@pytest.mark.settings(global_in_flight_limit=2)
async def test_claimed_jobs_count_against_the_global_limit(client: Client) -> None:
    issued = await client.enqueue_many(4)
    assert ids(await claim(client, max=10)) == issued[:2]
    assert await claim(client) == []
    stream = await client.take(prefetch=0)
    await client.heartbeat(stream)
    await client.succeed(issued[0])
    assert (await stream.job())["id"] == issued[2]
    waiting = asyncio.create_task(claim(client, wait_ms=30_000))
    await until_claiming(client, 1)
    await client.site.restart()
    assert await waiting == []
    # The claimed job of before is in flight still.
    assert len(await claim(client, max=10)) == 1


async def test_a_claim_gets_one_job_of_a_group_at_a_time(client: Client) -> None:
    first, second, third = await client.enqueue_many(3, group="g")
    other = (await client.enqueue(group="h"))["id"]
    assert ids(await claim(client, max=10, lease_ms=10)) == [first, other]
    client.site.clock.advance(11)
    # Its place in the group is its own, however its delivery has ended.
    assert ids(await claim(client, max=10)) == [first, other]
    await client.send("POST", f"/jobs/{first}/release")
    assert ids(await claim(client, max=10)) == [first]
    waiting = asyncio.create_task(claim(client, max=10, wait_ms=30_000))
    await until_claiming(client, 1)
    await client.succeed(first)
    assert ids(await waiting) == [second]
    assert (await client.job(third))["status"] == "ready"


async def test_the_gates_of_a_queue_hold_for_claims(client: Client) -> None:
    issued = await client.enqueue_many(3)
    await set_queue(client, concurrency=2)
    assert ids(await claim(client, max=10)) == issued[:2]
    assert await claim(client) == []
    await set_queue(client, paused=True)
    await client.succeed(issued[0])
    waiting = asyncio.create_task(claim(client, wait_ms=30_000))
    await until_claiming(client, 1)
    await set_queue(client)
    assert ids(await waiting) == [issued[2]]


async def test_a_stopping_server_answers_claims_that_wait(site: Site, client: Client) -> None:
    waiting = asyncio.create_task(claim(client, wait_ms=30_000))
    await until_claiming(client, 1)
    await site.stop()
    assert await waiting == []
    await site.start()
