"""The backlog: what could run now, what is left out and why, and the workers that it needs."""

from typing import Any

import pytest

from zq.features.backlog import store

from .claims import claim, set_queue
from .client import Client, Doc, with_query
from .test_budgets import IN_FLIGHT, a_second, put
from .test_way_back import device_of, send

NOTHING = {"ready": 0, "running": 0, "jobs": 0, "workers": 0, "held": {}}


async def backlog(client: Client, queue: str = "q", **params: Any) -> Doc:
    reply = await client.get(with_query(f"/queues/{queue}/backlog", params))
    assert reply.status == 200, reply.doc
    found: Doc = reply.doc
    return found


async def counted(client: Client, queue: str = "q") -> tuple[int, Doc]:
    """What could run now, and what is left out. Both together are all ready jobs."""
    found = await backlog(client, queue)
    ready = await client.count(queue=queue, status="ready")
    assert found["ready"] + sum(found["held"].values()) == ready
    assert found["jobs"] == found["ready"] + found["running"]
    return found["ready"], found["held"]


async def test_a_queue_that_never_was_has_nothing(client: Client) -> None:
    assert await backlog(client) == NOTHING
    assert await backlog(client, target=5) == NOTHING
    assert (await client.get("/backlog")).doc == NOTHING


async def test_ready_jobs_and_those_in_flight_need_workers_by_a_target(client: Client) -> None:
    await client.enqueue_many(7, queue="q")
    await client.enqueue(queue="q", ready_at=client.site.now + 60_000)
    await claim(client, "q", max=2)

    found = await backlog(client, target=3)
    assert found == {"ready": 5, "running": 2, "jobs": 7, "workers": 3, "held": {}}
    assert (await backlog(client, target=7))["workers"] == 1
    assert (await backlog(client, target=1))["workers"] == 7


async def test_a_paused_queue_has_nothing_that_could_run(client: Client) -> None:
    await client.enqueue_many(3, queue="q")
    await claim(client, "q")
    await set_queue(client, "q", paused=True)

    assert await counted(client) == (0, {"paused": 2})
    assert (await backlog(client, target=1))["workers"] == 1


async def test_jobs_behind_others_of_their_group_are_left_out(client: Client) -> None:
    await client.enqueue_many(4, queue="q", group="a")
    await client.enqueue_many(2, queue="q", group="b")
    await client.enqueue_many(3, queue="q")
    assert await counted(client) == (5, {"group": 4})

    await claim(client, "q", max=1)
    assert await counted(client) == (4, {"group": 4})


async def test_jobs_that_budgets_cannot_pay_are_left_out(client: Client) -> None:
    await put(client, "slots", 5, IN_FLIGHT)
    await client.enqueue_many(4, queue="q", budgets=[{"key": "slots", "cost": 2}])
    await client.enqueue_many(2, queue="q", budgets=[{"key": "slots"}])
    await client.enqueue(queue="q")
    assert await counted(client) == (4, {"budget": 3})

    jobs = await claim(client, "q", max=10)
    assert len(jobs) == 4
    assert await counted(client) == (0, {"budget": 3})
    await client.succeed(jobs[0]["id"])
    assert (await counted(client))[0] > 0


async def test_tokens_that_come_with_time_let_jobs_run_again(client: Client) -> None:
    await put(client, "pace", 2, a_second(2))
    await client.enqueue_many(5, queue="q", budgets=[{"key": "pace"}])
    await claim(client, "q", max=5)
    assert await counted(client) == (0, {"budget": 3})

    client.site.clock.advance(500)
    assert await counted(client) == (1, {"budget": 2})


async def test_jobs_beyond_the_limits_of_their_fair_keys_are_left_out(client: Client) -> None:
    await set_queue(client, "q", fair={"max_in_flight": 2})
    limit = {"max_in_flight": 3}
    assert (await client.call("PUT", "/queues/q/fair/b", limit)).status == 200
    await client.enqueue_many(5, queue="q", fair_key="a")
    await client.enqueue_many(2, queue="q", fair_key="a", priority=9)
    await client.enqueue_many(4, queue="q", fair_key="b")
    await client.enqueue(queue="q")
    assert await counted(client) == (6, {"fair": 6})

    await claim(client, "q", max=10)
    assert await counted(client) == (0, {"fair": 6})


async def test_the_rate_of_a_fair_key_leaves_out_what_it_does_not_let_through(
    client: Client,
) -> None:
    await set_queue(client, "q", fair={"rate": 3})
    await client.enqueue_many(5, queue="q", fair_key="a")
    assert await counted(client) == (3, {"fair": 2})

    assert len(await claim(client, "q", max=10)) == 3
    assert await counted(client) == (0, {"fair": 2})


async def test_keys_without_limits_leave_nothing_out(client: Client) -> None:
    for key in "abc":
        await client.enqueue_many(3, queue="q", fair_key=key)
    assert await counted(client) == (9, {})


async def test_each_job_is_counted_at_one_gate(client: Client) -> None:
    await put(client, "slots", 3, IN_FLIGHT)
    await set_queue(client, "q", fair={"max_in_flight": 4}, concurrency=2)
    drawing = [{"key": "slots"}]
    await client.enqueue_many(6, queue="q", fair_key="a", budgets=drawing)
    await client.enqueue_many(2, queue="q", group="g", fair_key="b", budgets=drawing)

    # Of key a, 4 of 6 may run and 3 can be paid. Then nothing is left for key b.
    assert await counted(client) == (2, {"fair": 2, "budget": 2, "group": 1, "concurrency": 1})


async def test_the_concurrency_of_a_queue_counts_what_runs(client: Client) -> None:
    await set_queue(client, "q", concurrency=4)
    await client.enqueue_many(6, queue="q")
    await claim(client, "q", max=1)
    assert await counted(client) == (3, {"concurrency": 2})


async def test_what_could_run_is_what_claims_get(client: Client) -> None:
    """The count is what a claim of everything would take."""
    await put(client, "slots", 2, IN_FLIGHT)
    await put(client, "pace", 2, a_second(2))
    await set_queue(client, "q", fair={"max_in_flight": 3})
    for number in range(40):
        fields: Doc = {"priority": number % 3}
        if number % 2:
            fields["fair_key"] = "abcde"[number % 5]
        if number % 3 == 0:
            fields["group"] = "gh"[number % 2]
        if number % 4 == 0:
            fields["budgets"] = [{"key": ("slots", "pace")[number % 8 // 4]}]
        await client.enqueue(queue="q", **fields)

    ready, _ = await counted(client)
    assert len(await claim(client, "q", max=100)) == ready
    assert (await counted(client))[0] == 0


# Workers


async def test_running_times_say_how_many_slots_are_needed(client: Client) -> None:
    """Jobs ran for about 20 s: 30 of them in a minute keep about 10 slots busy."""
    stream = await client.take(queue="q", more={"concurrency": 4}, prefetch=4)
    ids = await client.enqueue_many(4, queue="q")
    for id in ids:
        await client.until(id, status="in_flight")
    client.site.clock.advance(20_000)
    await client.succeed(*ids)
    await set_queue(client, "q", concurrency=34)
    await client.enqueue_many(30, queue="q")
    await client.until_count(4, queue="q", status="in_flight")

    found = await backlog(client)
    assert (found["ready"], found["running"], found["slots"]) == (26, 4, 4)
    assert 15_000 < found["mean_ms"] < 30_000
    needed = 4 + 26 * found["mean_ms"] / 60_000
    assert found["workers"] == -(-needed // 4)
    assert "mean_ms" not in await backlog(client, target=1)

    await set_queue(client, "q", rate=0.1)
    assert (await backlog(client))["workers"] == 1
    await stream.close()


async def test_without_running_times_and_workers_each_job_counts_as_one(client: Client) -> None:
    await client.enqueue_many(5, queue="q")
    found = await backlog(client)
    assert found == {"ready": 5, "running": 0, "jobs": 5, "workers": 5, "held": {}}


# Several queues


async def test_queues_are_added_up(client: Client) -> None:
    await client.enqueue_many(3, queue="shop-a")
    await client.enqueue_many(4, queue="shop-b")
    await client.enqueue_many(5, queue="mail")
    await set_queue(client, "shop-b", paused=True)
    await claim(client, "mail")

    async def all_of(**params: str) -> Doc:
        reply = await client.get(with_query("/backlog", {"target": 2, **params}))
        assert reply.status == 200, reply.doc
        found: Doc = reply.doc
        return found

    both = {"ready": 3, "running": 0, "jobs": 3, "workers": 2, "held": {"paused": 4}}
    assert await all_of(queue="shop-a,shop-b,shop-b,never") == both
    assert await all_of(prefix="shop-") == both
    assert await all_of(prefix="nobody") == NOTHING
    every = {"ready": 7, "running": 1, "jobs": 8, "workers": 4, "held": {"paused": 4}}
    assert await all_of() == every


async def test_jobs_that_leave_need_no_worker(client: Client) -> None:
    """Those for a device are carried by no worker, also while they are on their way."""
    device = await device_of(client)
    await send(client, *range(5))
    await device.ask(limit=2)
    await client.enqueue(queue="mail")

    async def check() -> None:
        found = await backlog(client, "to%2Fd1%2Fcommands")
        assert found == NOTHING | {"held": {"leaves": 3}}
        assert (await client.get("/backlog?prefix=to/")).doc == NOTHING
        one = {"ready": 1, "running": 0, "jobs": 1, "workers": 1, "held": {}}
        assert (await client.get("/backlog")).doc == one

    await check()
    # The rules are known before the first tick of a start.
    await client.site.restart()
    await check()


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"target": "0"}, "target"),
        ({"target": "1.5"}, "target"),
        ({"queue": ""}, "`queue` is empty"),
        ({"queue": "a", "prefix": "b"}, "not both"),
        ({"queue": ",".join(map(str, range(101)))}, "101 queues"),
    ],
)
async def test_what_cannot_be_is_refused(client: Client, params: Doc, named: str) -> None:
    reply = await client.get(with_query("/backlog", params))
    assert reply.status == 400
    assert named in reply.error


# What is not looked at


async def test_what_is_beyond_the_bounds_is_uncounted_where_anything_may_hold_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_LINES", 3)
    monkeypatch.setattr(store, "MOST_COUNTED", 10)
    for key in "abcde":
        await client.enqueue_many(2, queue="q", fair_key=key)
    await client.enqueue_many(30, queue="grouped")
    await client.enqueue_many(2, queue="grouped", group="g")

    assert await counted(client) == (10, {})
    assert await counted(client, "grouped") == (10, {"uncounted": 22})
    await set_queue(client, "q", fair={"max_in_flight": 1})
    assert await counted(client) == (3, {"fair": 3, "uncounted": 4})


async def test_a_queue_of_plain_jobs_is_counted_whole(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_COUNTED", 10)
    await client.enqueue_many(50, queue="q")
    assert await counted(client) == (50, {})
