"""The leases of claims: how long they last, how they end, and what a restart leaves of them."""

import asyncio

import pytest
from manual_clock import ManualClock

from .claims import LEASE_MS, claim, claim_one, set_queue
from .client import Client, Doc, ids
from .site import Site
from .streams import PATIENCE_S


async def test_leases_are_listed_with_the_earliest_deadline_first(client: Client) -> None:
    assert (await client.get("/leases")).doc == {"leases": []}
    now = client.site.now
    later, sooner, streamed, endless = await client.enqueue_many(4, queue="q")
    for lease_ms in (9_000, 5_000):
        claim = {"holder": f"for {lease_ms}", "max": 1, "lease_ms": lease_ms}
        assert (await client.post("/queues/q/claim", claim)).status == 200
    stream = await client.take(queue="q", more={"lease_ms": 7_000})
    assert (await stream.job())["id"] == streamed
    await client.take(queue="q")
    await client.until(endless, status="in_flight")
    leases = (await client.get("/leases")).doc["leases"]
    assert [(lease["id"], lease["lease_until"] - now) for lease in leases] == [
        *((sooner, 5_000), (streamed, 7_000), (later, 9_000)),
    ]
    first = {"id": sooner, "queue": "q", "type": "test", "worker": "for 5000", "lease": 1}
    assert leases[0] == first | {"dequeued_at": now, "lease_until": now + 5_000}
    assert leases[1]["worker"].startswith("#")
    assert (await client.get("/leases", limit=1)).doc["leases"] == leases[:1]
    assert (await client.get("/leases", limit=0)).status == 400


# How long a lease lasts


async def test_the_time_of_a_lease_is_the_claims_the_jobs_the_queues_or_half_a_minute(
    client: Client,
) -> None:
    now = client.site.now
    for queue, job, asked, expected in [
        (None, None, None, 30_000),
        (7_000, None, None, 7_000),
        (7_000, 6_000, None, 6_000),
        (7_000, 6_000, 5_000, 5_000),
    ]:
        if queue is not None:
            await set_queue(client, lease_ms=queue)
        stored = await client.enqueue(lease_ms=job)
        assert stored.get("lease_ms") == job
        taken = await claim_one(client, lease_ms=asked)
        assert taken["lease_until"] == now + expected
        await client.succeed(taken["id"])


async def test_the_time_of_a_jobs_leases_can_be_changed(client: Client) -> None:
    job = await client.enqueue(lease_ms=6_000, retry_limit=1)
    assert (await client.change(job["id"], retry_limit=2))["lease_ms"] == 6_000
    assert (await client.change(job["id"], lease_ms=8_000))["lease_ms"] == 8_000
    assert "lease_ms" not in await client.change(job["id"], lease_ms=None)
    for bad in (0, "x", 2**32):
        assert (await client.patch(f"/jobs/{job['id']}", {"lease_ms": bad})).status == 400
        assert (await client.post("/jobs", job | {"lease_ms": bad})).status == 400
    assert (await claim_one(client))["lease_until"] == client.site.now + LEASE_MS


# Expiry


async def test_a_lease_ends_strictly_after_its_deadline_and_the_job_keeps_its_place(
    client: Client,
) -> None:
    first, second = await client.enqueue_many(2)
    taken = await claim_one(client, lease_ms=20)
    assert (taken["id"], "stalls" in taken) == (first, False)
    client.site.clock.advance(20)
    assert ids(await claim(client, max=2)) == [second]
    client.site.clock.advance(1)
    again = await claim_one(client)
    assert (again["id"], again["lease"], again["stalls"], again["attempts"]) == (first, 2, 1, 0)


class LaggingClock(ManualClock):
    """Whoever looks at the wall time loses the processor afterwards."""

    lag_ms = 0

    def now_ms(self) -> int:
        seen = super().now_ms()
        self.advance(self.lag_ms)
        return seen


@pytest.mark.parametrize("lease_ms", range(1_000, 1_160, 20))
async def test_a_job_is_not_said_to_be_taken_before_the_deadline_of_who_had_it(
    site: Site, client: Client, lease_ms: int
) -> None:
    clock = site.clock = LaggingClock()
    await site.restart()
    await client.enqueue()
    first = await claim_one(client, lease_ms=lease_ms)
    clock.lag_ms = 50
    again: list[Doc] = []
    async with asyncio.timeout(PATIENCE_S):
        while not again:
            again = await claim(client)
    assert again[0]["dequeued_at"] > first["lease_until"]


async def test_an_expired_job_goes_to_who_waits_without_any_request(client: Client) -> None:
    job = await client.enqueue()
    await claim_one(client, lease_ms=1_000)
    stream = await client.take()
    await client.heartbeat(stream)
    client.site.clock.advance(1_001)
    assert (await stream.job())["id"] == job["id"]


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000])
async def test_setting_the_clock_ends_no_lease_early_and_lengthens_none(
    client: Client, step_ms: int
) -> None:
    job = await client.enqueue()
    await claim_one(client, lease_ms=5_000)
    client.site.clock.step(step_ms)
    client.site.clock.advance(5_000)
    assert await claim(client) == []
    client.site.clock.advance(1)
    taken = await claim_one(client)
    assert taken["id"] == job["id"]
    # Where no lease is under way, deadlines go by the wall clock again.
    await client.succeed(job["id"])
    client.site.clock.advance(40_000)
    await client.enqueue()
    assert (await claim_one(client))["lease_until"] == client.site.now + LEASE_MS


@pytest.mark.parametrize("verb", ["success", "failure", "extend", "release"])
async def test_a_stale_token_is_409_and_changes_nothing(client: Client, verb: str) -> None:
    job = await client.enqueue()
    bodies: dict[str, Doc] = {
        "success": {"result": 1},
        "failure": {"message": "m"},
        "extend": {"lease_ms": 60_000},
        "release": {"delay_ms": 1},
    }
    target, body = f"/jobs/{job['id']}/{verb}", bodies[verb]
    old = await claim_one(client, lease_ms=10)
    client.site.clock.advance(11)
    for status in ("ready", "in_flight"):
        await client.until(job["id"], status=status)
        before = await client.job(job["id"])
        reply = await client.post(target, body | {"lease": old["lease"]})
        assert (reply.status, reply.headers["zq-error"]) == (409, "stale_lease")
        assert await client.job(job["id"]) == before
        if status == "ready":
            assert (await claim_one(client))["lease"] == 2
    # A token that is yet to come is no better than one that has been.
    assert (await client.post(target, body | {"lease": 3})).status == 409
    assert (await client.post(target, body | {"lease": -1})).status == 400
    assert (await client.post(target, body | {"lease": 2})).status in (200, 204)
    unknown = "0" * 26
    assert (await client.post(f"/jobs/{unknown}/{verb}", body | {"lease": 1})).status == 404


async def test_bulk_names_what_is_stale_and_what_is_not_in_flight(client: Client) -> None:
    good, stale, ready = await client.enqueue_many(3)
    await claim(client, max=2)
    items: list[Doc] = [
        {"id": good, "lease": 1},
        {"id": stale, "lease": 2},
        {"id": ready},
        {"id": "x"},
    ]
    for verb, rest in (("extend", {"lease_ms": 50_000}), ("release", {}), ("success", {})):
        body: Doc = {"items": items} | rest
        reply = await client.post(f"/jobs/{verb}", body)
        assert reply.status == 422
        assert reply.doc["not_found"] == [ready, "x"]
        assert reply.doc["stale"] == [stale]
        match verb:
            case "extend":
                until = client.site.now + 50_000
                assert reply.doc["lease_until"] == until
                assert (await client.job(good))["lease_until"] == until
            case "release":
                assert (await client.job(good))["status"] == "ready"
                assert ids(await claim(client)) == [good]
                items[0]["lease"] = 2
            case _:
                assert not await client.exists(good)
    assert (await client.job(stale))["status"] == "in_flight"


# The server stops and starts


@pytest.mark.parametrize("how", ["restart", "crash"])
async def test_a_claimed_lease_survives_the_server_and_a_streams_does_not(
    client: Client, how: str
) -> None:
    kept, given_back = await client.enqueue_many(2, retention={"completed_ms": 60_000})
    taken = await claim_one(client, lease_ms=10_000)
    stream = await client.take(queue="default")
    assert (await stream.job())["id"] == given_back
    await (client.site.restart() if how == "restart" else client.site.crash())
    async with Client(client.site, client.wire) as later:
        assert (await later.job(kept))["lease_until"] == taken["lease_until"]
        assert (await later.job(given_back))["status"] == "ready"
        later.site.clock.advance(10_001)
        await later.until(kept, status="ready")
        assert (await later.post(f"/jobs/{kept}/success", {"lease": 1})).status == 409


async def test_a_lease_that_survived_is_acknowledged_and_extended(client: Client) -> None:
    first, second = await client.enqueue_many(2)
    await claim(client, max=2, lease_ms=10_000)
    await client.site.restart()
    assert (await client.post(f"/jobs/{first}/success", {"lease": 1})).status == 204
    assert (await client.post(f"/jobs/{second}/extend", {"lease_ms": 60_000})).status == 200
    client.site.clock.advance(59_999)
    assert (await client.job(second))["status"] == "in_flight"


async def test_a_queue_may_say_that_its_leases_do_not_survive(client: Client) -> None:
    await set_queue(client, "fleeting", leases_survive=False)
    job = await client.enqueue(queue="fleeting")
    await claim(client, "fleeting")
    await client.site.restart()
    again = await claim(client, "fleeting")
    assert ids(again) == [job["id"]]
    assert "stalls" not in again[0]
