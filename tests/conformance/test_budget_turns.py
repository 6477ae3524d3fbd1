"""Jobs with budgets: which run, which wait, which tokens come back, in which order."""

from .client import Client, Doc
from .streams import TakeStream
from .test_budgets import a_second, budget, put
from .test_settings import put as put_settings

B = [{"key": "b"}]


async def claimed(stream: TakeStream, count: int) -> list[str]:
    return [job["id"] for job in await stream.jobs(count)]


async def available(client: Client, key: str = "b") -> int:
    found: int = (await budget(client, key))["available"]
    return found


async def test_only_so_many_jobs_of_a_budget_are_in_flight(client: Client) -> None:
    await put(client, "b", 2)
    ids = await client.enqueue_many(5, budgets=B)
    others = await client.enqueue_many(2)
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 4) == ids[:2] + others
    await client.heartbeat(stream)
    assert (await client.job(ids[2]))["status"] == "ready"
    assert await client.count(status="ready") == 3
    assert [job["id"] for job in await client.jobs(status="ready", queue="default")] == ids[2:]
    # Success, failure, deletion: each gives back what it has drawn.
    await client.succeed(ids[0])
    assert await claimed(stream, 1) == ids[2:3]
    await client.fail(ids[1], kill=True)
    assert await claimed(stream, 1) == ids[3:4]
    assert (await client.delete(f"/jobs/{ids[2]}")).status == 204
    assert await claimed(stream, 1) == ids[4:]
    assert await available(client) == 0


async def test_what_a_stream_held_is_drawn_again_by_the_oldest(client: Client) -> None:
    await put(client, "b", 1)
    ids = await client.enqueue_many(3, budgets=B)
    first = await client.take()
    assert await claimed(first, 1) == ids[:1]
    second = await client.take()
    await client.heartbeat(second)
    await first.close()
    assert await claimed(second, 1) == ids[:1]
    # A failed one goes back to its place once it is due.
    await client.fail(ids[0], retry_at=client.site.now + 1000)
    assert await claimed(second, 1) == ids[1:2]
    client.site.clock.advance(1001)
    await client.until(ids[0], status="ready")
    await client.succeed(ids[1])
    assert await claimed(second, 1) == ids[:1]


async def test_tokens_come_evenly_with_time(client: Client) -> None:
    await put(client, "b", 3, a_second())
    ids = await client.enqueue_many(6, budgets=B)
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 3) == ids[:3]
    await client.succeed(*ids[:3])
    await client.heartbeat(await client.take(queue="none"))
    # A heartbeat took three seconds.
    assert await claimed(stream, 3) == ids[3:]
    more = await client.enqueue_many(2, budgets=B)
    assert (await client.job(more[0]))["status"] == "ready"
    client.site.clock.advance(333)
    assert (await client.job(more[0]))["status"] == "ready"
    client.site.clock.advance(1)
    assert await claimed(stream, 1) == more[:1]
    client.site.clock.advance(332)
    assert await available(client) == 0
    client.site.clock.advance(1)
    assert await claimed(stream, 1) == more[1:]


async def test_a_burst_may_be_above_the_allocation(client: Client) -> None:
    await put(client, "b", 1, a_second(4))
    ids = await client.enqueue_many(5, budgets=B)
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 4) == ids[:4]
    client.site.clock.advance(1000)
    assert await claimed(stream, 1) == ids[4:]
    client.site.clock.advance(60_000)
    assert await available(client) == 4


async def test_a_job_needs_all_its_budgets_and_blocks_none_behind_it(client: Client) -> None:
    await put(client, "a", 1)
    await put(client, "b", 3)
    both = [{"key": "a"}, {"key": "b", "cost": 2}]
    first, second = await client.enqueue_many(2, budgets=both)
    (cheap,) = await client.enqueue_many(1, budgets=B)
    urgent = await client.enqueue(budgets=[{"key": "b", "cost": 3}], priority=1)
    stream = await client.take(prefetch=9)
    # The urgent one takes all of b: nothing is left for the others.
    assert await claimed(stream, 1) == [urgent["id"]]
    await client.heartbeat(stream)
    await client.succeed(urgent["id"])
    assert await claimed(stream, 2) == [first, cheap]
    assert (await available(client, "a"), await available(client)) == (0, 0)
    await client.succeed(cheap)
    await client.heartbeat(stream)
    await client.succeed(first)
    assert await claimed(stream, 1) == [second]


async def test_a_restart_neither_forgets_nor_forgives(client: Client) -> None:
    await put(client, "b", 2, a_second())
    await put(client, "c", 1)
    ids = await client.enqueue_many(4, budgets=[{"key": "b"}])
    held = await client.enqueue(queue="c", budgets=[{"key": "c"}])
    waits = await client.enqueue(queue="c", budgets=[{"key": "c"}])
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 3) == [*ids[:2], held["id"]]
    client.site.clock.advance(400)
    await client.site.crash()
    # What had been spent is spent; what was in flight has been given back.
    assert (await available(client), await available(client, "c")) == (0, 1)
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 1) == [held["id"]]
    client.site.clock.advance(100)
    assert await claimed(stream, 1) == ids[:1]
    await client.succeed(held["id"])
    assert await claimed(stream, 1) == [waits["id"]]


async def test_a_wider_policy_counts_at_once_and_a_narrower_one_drains(client: Client) -> None:
    await put(client, "b", 1)
    ids = await client.enqueue_many(6, budgets=B)
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 1) == ids[:1]
    await put(client, "b", 3)
    assert await claimed(stream, 2) == ids[1:3]
    await put(client, "b", 1)
    await client.succeed(ids[0], ids[1])
    await client.heartbeat(stream)
    assert await available(client) == 0
    await client.succeed(ids[2])
    assert await claimed(stream, 1) == ids[3:4]
    # By time it has what it had, up to its capacity.
    await put(client, "b", 2, a_second())
    assert await available(client) == 0
    client.site.clock.advance(500)
    assert await claimed(stream, 1) == ids[4:5]


async def test_a_clock_that_steps_back_gives_nothing_and_takes_nothing(client: Client) -> None:
    await put(client, "b", 1, a_second())
    ids = await client.enqueue_many(2, budgets=B)
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 1) == ids[:1]
    client.site.clock.advance(500)
    client.site.clock.step(-3_600_000)
    assert await available(client) == 0
    client.site.clock.advance(500)
    assert await claimed(stream, 1) == ids[1:]


async def test_groups_keep_their_order_while_they_wait_for_a_budget(client: Client) -> None:
    await put(client, "b", 1)
    g1 = await client.enqueue_many(2, group="g", budgets=B)
    (h1,) = await client.enqueue_many(1, group="h", budgets=B)
    stream = await client.take(prefetch=9)
    assert await claimed(stream, 1) == g1[:1]
    await client.heartbeat(stream)
    await client.fail(g1[0], retry_at=client.site.now + 10)
    # Its group waits for it; the other group has the token.
    assert await claimed(stream, 1) == [h1]
    client.site.clock.advance(10)
    await client.until(g1[0], status="ready")
    await client.succeed(h1)
    assert await claimed(stream, 1) == g1[:1]
    await client.succeed(g1[0])
    assert await claimed(stream, 1) == g1[1:]


async def test_gates_of_queues_count_beside_budgets(client: Client) -> None:
    await put(client, "b", 3)
    await put_settings(client, "shut", paused=True)
    await put_settings(client, "one", concurrency=1)
    shut = await client.enqueue(queue="shut", budgets=B)
    ones = await client.enqueue_many(2, queue="one", budgets=B)
    plain = await client.enqueue(queue="one")
    free = await client.enqueue(queue="free", budgets=B)
    stream = await client.take(prefetch=9)
    # What waits in a queue that is shut keeps no token from others.
    assert await claimed(stream, 2) == [ones[0], free["id"]]
    await client.succeed(ones[0])
    assert await claimed(stream, 1) == ones[1:]
    await client.succeed(ones[1])
    assert await claimed(stream, 1) == [plain["id"]]
    await put_settings(client, "shut")
    assert await claimed(stream, 1) == [shut["id"]]


async def test_named_queues_get_their_own_jobs_of_a_shared_budget(client: Client) -> None:
    await put(client, "b", 1)
    await client.enqueue_many(3, queue="unserved", budgets=B)
    (mine,) = await client.enqueue_many(1, queue="mine", budgets=B)
    stream = await client.take(queue="mine", prefetch=5)
    assert await claimed(stream, 1) == [mine]


async def test_a_job_that_waits_moves_and_ends_like_any_other(client: Client) -> None:
    await put(client, "b", 1)
    ids = await client.enqueue_many(5, budgets=B)
    stream = await client.take(queue="default,r", prefetch=9)
    assert await claimed(stream, 1) == ids[:1]
    await client.change(ids[4], priority=1, queue="r")
    await client.change(ids[1], ready_at=client.site.now + 60_000)
    assert (await client.delete(f"/jobs/{ids[2]}")).status == 204
    assert (await client.post(f"/jobs/{ids[3]}/cancel", {})).status == 200
    found = await budget(client, "b")
    assert (found["waiting"], found["unfinished"]) == (1, 3)
    await client.succeed(ids[0])
    assert await claimed(stream, 1) == ids[4:]
    await client.succeed(ids[4])
    await client.heartbeat(stream)
    client.site.clock.advance(60_000)
    assert await claimed(stream, 1) == ids[1:2]
    doc: Doc = (await client.get("/jobs/count", status="ready")).doc
    assert doc == {"count": 0}
