"""How many jobs a stream holds, what frees a place, and the limit over all streams."""

import pytest

from .client import Client, ids


async def test_prefetch_is_1_by_default(client: Client) -> None:
    first, second = await client.enqueue_many(2)
    stream = await client.take()
    assert (await stream.job())["id"] == first
    await client.heartbeat(stream)
    assert (await client.job(second))["status"] == "ready"
    await client.succeed(first)
    assert (await stream.job())["id"] == second


@pytest.mark.every_library
async def test_a_stream_holds_at_most_prefetch_jobs(client: Client) -> None:
    issued = await client.enqueue_many(10)
    stream = await client.take(prefetch=4)
    assert ids(await stream.jobs(4)) == issued[:4]
    await client.heartbeat(stream)
    assert await client.count(status="in_flight") == 4
    await client.succeed(*issued[1:3])
    assert ids(await stream.jobs(2)) == issued[4:6]
    await client.heartbeat(stream)
    assert await client.count(status="in_flight") == 4


@pytest.mark.every_library
async def test_prefetch_0_is_unlimited(client: Client) -> None:
    issued = await client.enqueue_many(3_000)
    stream = await client.take(prefetch=0)
    assert ids(await stream.jobs(3_000)) == issued


@pytest.mark.parametrize("how", ["success", "bulk success", "retry", "kill", "delete", "reset"])
async def test_a_slot_frees_when_its_job_is_settled_by_anyone(client: Client, how: str) -> None:
    stream = await client.take(prefetch=1)
    first = (await client.enqueue())["id"]
    assert (await stream.job())["id"] == first
    async with Client(client.site, client.wire) as other:
        match how:
            case "success":
                assert (await other.send("POST", f"/jobs/{first}/success")).status == 204
            case "bulk success":
                await other.succeed(first)
            case "retry":
                await other.fail(first)
            case "kill":
                await other.fail(first, kill=True)
            case "delete":
                assert (await other.delete(f"/jobs/{first}")).status == 204
            case "reset":
                assert (await other.send("POST", "/reset")).status == 204
    second = await client.enqueue()
    assert (await stream.job())["id"] == second["id"]


async def test_a_delete_by_filter_frees_slots(client: Client) -> None:
    first, second = await client.enqueue_many(2, queue="a")
    third = (await client.enqueue(queue="b"))["id"]
    stream = await client.take(prefetch=2)
    assert ids(await stream.jobs(2)) == [first, second]
    assert (await client.delete("/jobs", queue="a")).doc == {"deleted": 2}
    assert (await stream.job())["id"] == third


async def test_a_patch_does_not_free_a_slot(client: Client) -> None:
    first, second = await client.enqueue_many(2)
    stream = await client.take()
    await stream.job()
    await client.change(first, queue="other", priority=1, ready_at=client.site.now + 5)
    assert (await client.patch("/jobs", {"retry_limit": 1})).status == 200
    await client.heartbeat(stream)
    assert (await client.job(second))["status"] == "ready"


async def test_a_redelivered_failure_takes_a_slot_again(client: Client) -> None:
    first = (await client.enqueue())["id"]
    stream = await client.take()
    for attempts in range(4):
        job = await stream.job()
        assert (job["id"], job["attempts"]) == (first, attempts)
        await client.fail(first, retry_at=0)
    await stream.job()
    second = (await client.enqueue())["id"]
    # Four failures freed four slots and four deliveries took them: none is left for the second.
    await client.heartbeat(stream)
    assert (await client.job(second))["status"] == "ready"


async def test_a_new_job_does_not_overtake_the_backlog(client: Client) -> None:
    issued = await client.enqueue_many(3)
    stream = await client.take()
    for job_id in issued:
        assert (await stream.job())["id"] == job_id
        await client.enqueue()
        await client.succeed(job_id)
    assert (await stream.job())["id"] > issued[-1]


async def test_a_more_urgent_job_takes_the_next_free_slot(client: Client) -> None:
    first, second = await client.enqueue_many(2)
    stream = await client.take()
    assert (await stream.job())["id"] == first
    urgent = await client.enqueue(priority=0)
    await client.succeed(first)
    assert (await stream.job())["id"] == urgent["id"]
    await client.succeed(urgent["id"])
    assert (await stream.job())["id"] == second


# The limit over all streams


@pytest.mark.settings(global_in_flight_limit=3)
async def test_the_global_limit_holds_over_all_streams(client: Client) -> None:
    one = await client.take(prefetch=2)
    two = await client.take(prefetch=0)
    issued = await client.enqueue_many(6)
    await client.until_count(3, status="in_flight")
    held = ids(await client.jobs(status="in_flight"))
    assert held == issued[:3]
    await client.succeed(held[0])
    await client.until_count(3, status="in_flight")
    await client.succeed(held[1], held[2])
    await client.until_count(3, status="in_flight")
    assert await client.count() == 3
    await one.close()
    await two.close()


@pytest.mark.settings(global_in_flight_limit=1)
@pytest.mark.parametrize("how", ["success", "retry", "kill", "delete", "disconnect"])
async def test_whatever_ends_a_delivery_wakes_streams_that_wait_for_the_limit(
    client: Client, how: str
) -> None:
    first = (await client.enqueue(queue="a"))["id"]
    holder = await client.take(queue="a")
    await holder.job()
    waiter = await client.take(queue="b", prefetch=5)
    second = await client.enqueue(queue="b")
    await client.heartbeat(waiter)
    assert (await client.job(second["id"]))["status"] == "ready"
    match how:
        case "success":
            await client.succeed(first)
        case "retry":
            await client.fail(first)
        case "kill":
            await client.fail(first, kill=True)
        case "delete":
            await client.delete(f"/jobs/{first}")
        case "disconnect":
            await holder.close()
    assert (await waiter.job())["id"] == second["id"]


@pytest.mark.settings(global_in_flight_limit=0)
async def test_a_global_limit_of_0_is_no_limit(client: Client) -> None:
    issued = await client.enqueue_many(2_000)
    stream = await client.take(prefetch=0)
    assert ids(await stream.jobs(2_000)) == issued


@pytest.mark.settings(global_in_flight_limit=5)
async def test_prefetch_0_means_up_to_the_global_limit(client: Client) -> None:
    issued = await client.enqueue_many(8)
    stream = await client.take(prefetch=0)
    assert ids(await stream.jobs(5)) == issued[:5]
    await client.heartbeat(stream)
    await client.succeed(issued[0])
    assert (await stream.job())["id"] == issued[5]
