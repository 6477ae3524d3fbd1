"""Gates of queues: paused, concurrency, rate. Each claim asks them, and no job changes."""

from .client import Client
from .streams import TakeStream
from .test_settings import change, put


async def claimed(stream: TakeStream, count: int) -> list[str]:
    return [job["id"] for job in await stream.jobs(count)]


async def test_a_paused_queue_delivers_nothing_until_it_is_resumed(client: Client) -> None:
    await put(client, "q", paused=True)
    job = await client.enqueue(queue="q", priority=0)
    everything = await client.take(prefetch=5)
    named = await client.take(queue="q", prefetch=5)
    other = await client.enqueue(queue="other")
    assert await claimed(everything, 1) == [other["id"]]
    await client.heartbeat(named)
    assert (await client.job(job["id"]))["status"] == "ready"
    await change(client, "q", paused=None)
    await client.until(job["id"], status="in_flight")


async def test_pausing_leaves_what_runs_alone_and_holds_what_returns(client: Client) -> None:
    stream = await client.take(queue="q", prefetch=1)
    first, second = await client.enqueue_many(2, queue="q")
    assert await claimed(stream, 1) == [first]
    await put(client, "q", paused=True)
    assert (await client.job(first))["status"] == "in_flight"
    await client.succeed(first)
    await client.heartbeat(stream)
    await client.site.restart()
    again = await client.take(prefetch=9)
    await client.heartbeat(again)
    await client.delete("/queues/q/settings")
    assert await claimed(again, 1) == [second]


async def test_a_queue_with_a_concurrency_has_no_more_than_that_in_flight(client: Client) -> None:
    await put(client, "q", concurrency=2)
    ids = await client.enqueue_many(5, queue="q", priority=1)
    others = await client.enqueue_many(2, queue="other", priority=2)
    first = await client.take(prefetch=4)
    assert await claimed(first, 4) == ids[:2] + others
    second = await client.take(queue="q", prefetch=9)
    await client.heartbeat(second)
    assert await client.count(queue="q", status="in_flight") == 2
    # Each that is settled lets another in, wherever there is a worker for it.
    await client.succeed(ids[1])
    assert (await client.until(ids[2], status="in_flight"))["attempts"] == 0
    await client.fail(ids[0])
    await client.until(ids[3], status="in_flight")
    assert await client.count(queue="q", status="in_flight") == 2
    await change(client, "q", concurrency=3)
    await client.until(ids[4], status="in_flight")


async def test_the_order_among_open_queues_is_that_of_one_queue(client: Client) -> None:
    await put(client, "shut", paused=True)
    await put(client, "bounded", concurrency=2)
    await client.enqueue(queue="shut", priority=0)
    expected: list[tuple[int, str]] = []
    for priority in (5, 1, 3):
        for queue in ("a", "bounded", "b"):
            job = await client.enqueue(queue=queue, priority=priority)
            if (queue, priority) != ("bounded", 5):
                expected.append((priority, job["id"]))
    stream = await client.take(prefetch=20)
    assert await claimed(stream, 8) == [id for _, id in sorted(expected)]
    await client.heartbeat(stream)


async def test_a_rate_delivers_a_second_of_it_at_once_and_then_one_by_one(client: Client) -> None:
    await put(client, "q", rate=2)
    ids = await client.enqueue_many(5, queue="q")
    stream = await client.take(queue="q", prefetch=10)
    assert await claimed(stream, 2) == ids[:2]
    other = await client.enqueue(queue="other")
    everything = await client.take(prefetch=10)
    assert await claimed(everything, 1) == [other["id"]]
    assert await client.count(queue="q", status="ready") == 3
    client.site.clock.advance(499)
    await client.enqueue(queue="q")
    assert await client.count(queue="q", status="ready") == 4
    client.site.clock.advance(1)
    await client.until(ids[2], status="in_flight")
    assert await client.count(queue="q", status="ready") == 3
    client.site.clock.advance(500)
    await client.until(ids[3], status="in_flight")
    # No hours of rest make up for more than a second of the rate.
    client.site.clock.advance(3_600_000)
    await client.until_count(0, queue="q", status="ready")
    await client.enqueue_many(4, queue="q")
    await client.until_count(4, queue="q", status="ready")


async def test_a_slow_rate_is_one_delivery_each_so_many_seconds(client: Client) -> None:
    await put(client, "q", rate=0.1)
    first, second = await client.enqueue_many(2, queue="q")
    stream = await client.take(prefetch=10)
    assert await claimed(stream, 1) == [first]
    # What is given back is delivered again, and that counts too.
    await client.succeed(first)
    client.site.clock.advance(9_999)
    assert (await client.job(second))["status"] == "ready"
    client.site.clock.advance(1)
    await client.until(second, status="in_flight")


async def test_a_change_of_the_rate_is_effective_at_once(client: Client) -> None:
    await put(client, "q", rate=0.001)
    ids = await client.enqueue_many(3, queue="q")
    stream = await client.take(prefetch=10)
    assert await claimed(stream, 1) == ids[:1]
    await put(client, "q", rate=1)
    await client.heartbeat(stream)
    await client.until(ids[1], status="in_flight")
    await client.delete("/queues/q/settings")
    await client.until(ids[2], status="in_flight")


async def test_gates_hold_for_keys_of_a_reach_and_for_streams_of_many_queues(
    client: Client,
) -> None:
    names = [f"q{n:03}" for n in range(600)]
    await client.post(
        "/jobs/bulk", {"jobs": [{"queue": n, "type": "t", "payload": 1} for n in names]}
    )
    await put(client, names[0], paused=True)
    await put(client, names[599], concurrency=1)
    stream = await client.take(prefetch=1_000)
    jobs = await stream.jobs(599)
    assert [job["queue"] for job in jobs] == names[1:]
