"""Fair keys: whose turn it is, what is refused, and what is shown."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from model.fair_queue import FairQueue

from zq.features.fair import store
from zq.features.fair.model import MAX_KEY

from .claims import claim, claim_one, set_queue
from .client import Client, Doc, new_job
from .site import Site

FAIR = "/queues/default/fair"


async def flood(client: Client, key: str, count: int, **fields: Any) -> list[str]:
    """Store jobs of one key. The payloads count them."""
    jobs = [new_job(payload=number, fair_key=key, **fields) for number in range(count)]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201, reply.doc
    return [job["id"] for job in reply.doc["jobs"]]


async def turns(client: Client, count: int) -> list[str]:
    """The keys of the next deliveries, each of which succeeds at once."""
    found = []
    for _ in range(count):
        job = await claim_one(client)
        found.append(job["fair_key"])
        await client.succeed(job["id"])
    return found


async def shown(client: Client, **params: Any) -> list[Doc]:
    reply = await client.get(FAIR, **params)
    assert reply.status == 200, reply.doc
    keys: list[Doc] = reply.doc["keys"]
    return keys


# Turns


async def test_the_first_job_of_a_key_does_not_wait_for_the_flood_of_another(
    client: Client,
) -> None:
    await flood(client, "a", 200)
    await flood(client, "b", 1)

    assert "b" in await turns(client, 2)


async def test_among_n_keys_the_first_job_of_a_new_one_comes_within_n_deliveries(
    client: Client,
) -> None:
    for key in "abcdefghi":
        await flood(client, key, 20)
    await turns(client, 15)
    await flood(client, "new", 3)

    assert "new" in await turns(client, 10)


async def test_a_job_that_draws_from_another_budget_keeps_the_place_of_its_key(
    client: Client,
) -> None:
    first, second = await flood(client, "a", 2)
    (other,) = await flood(client, "b", 1)
    policy = {"allocation": 1, "strategy": {"type": "while_in_flight"}}
    draw = {"key": "tokens", "cost": 1, "create_with": policy}
    for id in (first, second, other):
        reply = await client.call("PUT", f"/jobs/{id}/budgets", {"budgets": [draw]})
        assert reply.status == 200, reply.doc

    assert [*await turns(client, 2), *await turns(client, 1)] == ["a", "b", "a"]


async def test_one_claim_of_many_jobs_shares_them_too(client: Client) -> None:
    for key in "abc":
        await flood(client, key, 20)

    jobs = await claim(client, max=30)

    assert Counter(job["fair_key"] for job in jobs) == {"a": 10, "b": 10, "c": 10}
    for key in "abc":
        own = [job["payload"] for job in jobs if job["fair_key"] == key]
        assert sorted(own) == list(range(10))


async def test_keys_take_turns_by_their_weights(client: Client) -> None:
    await flood(client, "a", 60)
    await flood(client, "b", 60, fair_weight=3)

    found = Counter(job["fair_key"] for job in await claim(client, max=40))

    assert 9 <= found["a"] <= 11


async def test_a_key_alone_gets_everything_in_the_order_of_today(client: Client) -> None:
    ids = await flood(client, "a", 10)
    urgent = await flood(client, "a", 1, priority=1)

    assert [(await claim_one(client))["id"] for _ in range(11)] == urgent + ids


async def test_a_more_urgent_job_comes_first_whatever_its_key(client: Client) -> None:
    await flood(client, "a", 3)
    await flood(client, "b", 3)
    urgent = await flood(client, "a", 2, priority=1)

    assert [(await claim_one(client))["id"] for _ in range(2)] == urgent
    assert (await claim_one(client))["fair_key"] == "b"


@pytest.mark.parametrize("ends", ["success", "release", "crash"])
async def test_a_new_key_does_not_wait_for_what_another_was_charged_with_in_vain(
    client: Client, site: Site, ends: str
) -> None:
    """Jobs that took long before take no time now, or a worker gives back all that it has."""
    await flood(client, "a", 200)
    slow = await claim_one(client)
    site.clock.advance(10_000)
    await client.succeed(slow["id"])
    if ends == "crash":
        stream = await client.take(prefetch=100)
        await stream.jobs(100)
        await site.crash()
    else:
        jobs = [job["id"] for job in await claim(client, max=100)]
        body = {"ids": jobs} if ends == "success" else {"items": [{"id": job} for job in jobs]}
        assert (await client.post(f"/jobs/{ends}", body)).status in (200, 204)
    await flood(client, "b", 1)

    assert "b" in await turns(client, 2)


async def test_a_key_that_its_limit_held_back_saves_nothing_up(client: Client) -> None:
    await client.call("PUT", f"{FAIR}/a", {"max_in_flight": 1})
    await flood(client, "a", 100)
    assert (await claim_one(client))["fair_key"] == "a"
    await flood(client, "b", 200)
    assert await turns(client, 100) == ["b"] * 100
    await client.delete(f"{FAIR}/a")

    assert 10 <= (await turns(client, 20)).count("a") <= 13


async def test_slow_jobs_count_by_their_running_time(client: Client, site: Site) -> None:
    await flood(client, "slow", 50)
    await flood(client, "fast", 50)
    for _ in range(2):
        job = await claim_one(client)
        if job["fair_key"] == "slow":
            site.clock.advance(10_000)
        await client.succeed(job["id"])

    assert await turns(client, 10) == ["fast"] * 10


async def test_shares_survive_a_restart_and_a_crash(client: Client, site: Site) -> None:
    await flood(client, "a", 50)
    await flood(client, "b", 50)
    before = await turns(client, 10)
    await site.restart()
    between = await turns(client, 10)
    await site.crash()
    after = await turns(client, 10)

    for found in (before, between, after):
        assert 4 <= found.count("a") <= 6


async def test_what_a_crash_takes_from_workers_is_given_back_by_the_weight_that_was_set(
    client: Client, site: Site
) -> None:
    await client.call("PUT", f"{FAIR}/a", {"weight": 4})
    await flood(client, "a", 200)
    await flood(client, "b", 200)
    stream = await client.take(prefetch=50)
    taken = Counter(job["fair_key"] for job in await stream.jobs(50))
    assert 39 <= taken["a"] <= 41

    await site.crash()
    assert 15 <= (await turns(client, 20)).count("a") <= 17


async def test_keys_without_jobs_leave_nothing(client: Client) -> None:
    for number in range(50):
        await flood(client, f"k{number}", 1)
    await turns(client, 50)

    assert await shown(client) == []
    assert (await client.get(f"{FAIR}/k1")).status == 404


async def test_jobs_that_fail_wait_again_in_their_turn(client: Client) -> None:
    await flood(client, "a", 2, backoff={"exponent": 1, "base_ms": 0, "jitter_ms": 0})
    job = await claim_one(client)
    await client.fail(job["id"], retry_at=0)
    found = {(await claim_one(client))["id"] for _ in range(2)}

    assert job["id"] in found


# Limits


async def test_a_key_has_no_more_jobs_in_flight_than_it_may(client: Client) -> None:
    await set_queue(client, fair={"max_in_flight": 2})
    await flood(client, "a", 10)
    await flood(client, "b", 3)

    jobs = await claim(client, max=10)
    assert Counter(job["fair_key"] for job in jobs) == {"a": 2, "b": 2}
    assert await claim(client, max=10) == []

    done = next(job for job in jobs if job["fair_key"] == "a")
    await client.succeed(done["id"])
    assert [job["fair_key"] for job in await claim(client, max=10)] == ["a"]


async def test_what_is_set_for_a_key_comes_before_its_queue_and_its_jobs(client: Client) -> None:
    await set_queue(client, fair={"max_in_flight": 1})
    put = await client.call("PUT", f"{FAIR}/a", {"weight": 4, "max_in_flight": 3})
    await flood(client, "a", 10)
    await flood(client, "b", 10)

    found = Counter(job["fair_key"] for job in await claim(client, max=10))
    assert (put.status, put.doc) == (200, {"weight": 4.0, "max_in_flight": 3})
    assert found == {"a": 3, "b": 1}
    document = (await client.get(f"{FAIR}/a")).doc
    assert (document["weight"], document["limit"]) == (4.0, put.doc)

    assert (await client.call("PUT", f"{FAIR}/a", {"max_in_flight": 5})).status == 200
    assert len(await claim(client, max=10)) == 2
    assert (await client.delete(f"{FAIR}/a")).status == 204
    assert (await client.delete(f"{FAIR}/a")).status == 404


async def test_a_restart_opens_keys_that_were_full(client: Client, site: Site) -> None:
    await set_queue(client, fair={"max_in_flight": 1})
    await flood(client, "a", 3)
    stream = await client.take(prefetch=1)
    await stream.job()
    assert await claim(client, max=10) == []
    await site.crash()

    assert len(await claim(client, max=10)) == 1


# Where keys come from


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("payload.tenant", {"payload": {"x": [1], "tenant": "acme"}}),
        ("payload.args.user", {"payload": {"args": {"user": "acme"}}}),
        ("meta.tenant", {"payload": 1, "meta": {"tenant": "acme"}}),
    ],
)
async def test_a_queue_takes_the_key_from_a_field(client: Client, place: str, fields: Doc) -> None:
    before = await client.enqueue(**fields)
    await set_queue(client, fair={"key": place})
    after = await client.enqueue(**fields)
    own = await client.enqueue(**fields, fair_key="mine")
    none = await client.enqueue(payload={})

    keys = [(await client.job(job["id"])).get("fair_key") for job in (before, after, own, none)]
    assert keys == [None, "acme", "mine", None]
    assert {key["key"] for key in await shown(client)} == {"acme", "mine", ""}


async def test_a_job_with_the_empty_key_can_be_sent_again_as_it_is_shown(client: Client) -> None:
    await set_queue(client, fair={"key": "payload.tenant"})
    await client.enqueue(payload={})
    (job,) = await claim(client)

    assert (await client.post("/jobs", job)).status == 201
    assert [key["waiting"] for key in await shown(client)] == [1]


# What is refused and shown


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"fair_key": ""}, "fair_key must not be empty"),
        ({"fair_key": "a\0"}, "fair_key must not contain NUL"),
        ({"fair_weight": 0}, "fair_weight must be between 0.01 and 100, not 0"),
        ({"fair_weight": 101.5}, "fair_weight must be between 0.01 and 100, not 101.5"),
        (
            {"fair_key": "a" * (MAX_KEY + 1)},
            "fair_key has 201 characters, but at most 200 are allowed: send a digest",
        ),
    ],
)
async def test_fields_that_cannot_be_are_refused(client: Client, fields: Doc, error: str) -> None:
    reply = await client.post("/jobs", new_job(**fields))
    bulk = await client.post("/jobs/bulk", {"jobs": [new_job(), new_job(**fields)]})

    assert (reply.status, reply.error) == (400, error)
    assert (bulk.status, bulk.error) == (400, f"jobs[1]: {error}")


@pytest.mark.parametrize(
    "fair", [{"key": "tenant"}, {"key": "payload"}, {"max_in_flight": 0}, {"rates": 1}, 7]
)
async def test_settings_that_cannot_be_are_refused(client: Client, fair: object) -> None:
    reply = await client.call("PUT", "/queues/default/settings", {"fair": fair})

    assert reply.status == 400
    assert "fair" in reply.error


@pytest.mark.parametrize("body", [{"weight": 0}, {"weight": 1000}, {"max_in_flight": 0}, {"x": 1}])
async def test_limits_that_cannot_be_are_refused(client: Client, body: Doc) -> None:
    assert (await client.call("PUT", f"{FAIR}/a", body)).status == 400


async def test_keys_are_shown_in_three_orders_and_by_pages(client: Client) -> None:
    for number, key in enumerate("abc", 1):
        await flood(client, key, number)
    await turns(client, 1)

    by_share, by_depth = await shown(client), await shown(client, order="depth")
    assert [key["key"] for key in by_depth] == ["c", "b"]
    assert [key["waiting"] for key in by_depth] == [3, 2]
    assert by_share[0]["behind_ms"] == 0 and by_share[0]["share"] == 0.5
    assert {key["key"] for key in await shown(client, order="wait")} == {"b", "c"}
    page = (await client.get(FAIR, limit=1)).doc
    assert (page["total"], page["waiting"], page["next"]) == (2, 5, 1)
    assert [key["key"] for key in await shown(client, **{"from": 1, "limit": 1})] == [
        by_share[1]["key"]
    ]
    assert (await client.get(FAIR, order="name")).status == 400


async def test_a_page_of_many_keys_sorts_those_that_come_first(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_SORTED", 2)
    for key in "fedcba":
        await flood(client, key, 1)

    for order in ("share", "wait", "depth"):
        assert {key["key"] for key in await shown(client, order=order)} == {"f", "e", "b", "a"}
    assert (await client.get(f"{FAIR}/d")).doc["waiting"] == 1


async def test_a_key_gets_no_more_than_its_rate(client: Client, site: Site) -> None:
    await set_queue(client, fair={"rate": 2})
    await flood(client, "a", 10)
    await flood(client, "b", 1)

    first = await claim(client, max=10)
    assert Counter(job["fair_key"] for job in first) == {"a": 2, "b": 1}
    assert await claim(client, max=10) == []
    site.clock.advance(500)
    assert len(await claim(client, max=10)) == 1
    site.clock.advance(10_000)
    assert len(await claim(client, max=10)) == 2


async def test_a_worker_that_waits_gets_the_next_job_that_a_rate_lets_through(
    client: Client, site: Site
) -> None:
    await client.call("PUT", f"{FAIR}/a", {"rate": 0.5})
    ids = await flood(client, "a", 2)
    stream = await client.take(prefetch=5)
    assert (await stream.job())["id"] == ids[0]
    site.clock.advance(2_000)

    assert (await stream.job())["id"] == ids[1]


# Why a job waits


async def reason(client: Client, job: str) -> Doc:
    reasons: list[Doc] = (await client.get(f"/jobs/{job}/why")).doc["reasons"]
    return next((each for each in reasons if each["code"] == "fair"), {})


async def test_why_tells_the_place_of_the_key_and_its_share(client: Client) -> None:
    for key in "abcd":
        _, second = await flood(client, key, 2)
    await turns(client, 3)

    (last,) = await flood(client, "a", 1)
    assert await reason(client, second) == {}
    told = await reason(client, last)
    assert (told["fair_key"], told["share"], told["queue"]) == ("a", 0.25, "default")
    assert told["count"] > 1
    assert 'fair key "a" is number' in told["text"]
    assert "of 4 keys that wait, with 25.0% of the queue" in told["text"]


async def test_why_tells_that_a_key_is_at_its_limit(client: Client, site: Site) -> None:
    await set_queue(client, fair={"max_in_flight": 1, "rate": 1})
    _, second = await flood(client, "a", 2)
    (job,) = await claim(client, max=5)
    text = 'fair key "a" has 1 jobs in flight and may have 1'
    assert (await reason(client, second))["text"] == text
    await client.succeed(job["id"])
    assert await claim(client, max=5) == []
    told = await reason(client, second)
    assert told["text"] == 'fair key "a" is at its rate'
    assert told["until"] == site.clock.now_ms() + 1_000


# Beside an exact queue


@pytest.mark.parametrize("seed", range(4))
async def test_turns_are_those_of_an_exact_fair_queue(
    client: Client, site: Site, seed: int
) -> None:
    draw, exact, running = Random(seed), FairQueue(), list[str]()
    for step in range(80):
        chosen = draw.random()
        if chosen < 0.4 or not step:
            key, weight = draw.choice("abc"), draw.choice((0.5, 1, 2))
            for job in await flood(client, key, draw.randint(1, 3), fair_weight=weight):
                exact.put(job, key, weight)
        elif chosen < 0.7 and len(running) < 2:
            jobs = [job["id"] for job in await claim(client, lease_ms=10**9)]
            assert jobs == [each for each in [exact.take()] if each is not None]
            site.clock.advance(draw.choice((0, 8, 64, 512)))
            running += jobs
        elif running:
            job = running.pop(draw.randrange(len(running)))
            taken = (await client.job(job))["dequeued_at"]
            await client.succeed(job)
            exact.end(job, site.clock.now_ms() - taken)


# Devices


async def from_lane(client: Client, lane: str, first: int, count: int, **fields: Any) -> list[Doc]:
    """Store numbered jobs of a lane, `DEVICE/LANE`."""
    producer = {"name": lane, "epoch": "e", "seq": first}
    jobs = [new_job(payload=number, **fields) for number in range(count)]
    reply = await client.post("/jobs/bulk", {"producer": producer, "jobs": jobs})
    assert reply.status == 201, reply.doc
    stored: list[Doc] = reply.doc["jobs"]
    return stored


async def test_a_queue_may_take_the_key_from_who_numbers_the_jobs(client: Client) -> None:
    await set_queue(client, "default", fair={"key": "producer"})
    await from_lane(client, "d1/main", 1, 1)
    await from_lane(client, "d1/backlog", 1, 1)
    await from_lane(client, "d2", 1, 1)
    await from_lane(client, "d3/main", 1, 1, fair_key="own")
    await client.post("/jobs", new_job())

    waiting = {each["key"]: each["waiting"] for each in await shown(client)}
    assert waiting == {"d1": 2, "d2": 1, "own": 1, "": 1}


async def test_among_200_devices_one_that_floods_slows_no_other(client: Client, site: Site) -> None:
    await set_queue(client, "default", fair={"key": "producer"})
    exact = FairQueue()
    for job in await from_lane(client, "d0/main", 1, 1_000):
        exact.put(job["id"], "d0")
    for number in range(1, 200):
        for job in await from_lane(client, f"d{number}/main", 1, 2):
            exact.put(job["id"], f"d{number}")

    served: list[str] = []
    for _ in range(10):
        jobs = await claim(client, max=40, lease_ms=10**9)
        assert [job["id"] for job in jobs] == [exact.take() for _ in jobs]
        site.clock.advance(8)
        for job in jobs:
            exact.end(job["id"], 8)
        await client.post("/jobs/success", {"ids": [job["id"] for job in jobs]})
        served += [job["fair_key"] for job in jobs]
    assert served[:200].count("d0") == 1 and len(set(served[:200])) == 200
