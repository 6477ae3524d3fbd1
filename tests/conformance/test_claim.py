"""Taking jobs without a stream: the jobs of a claim, their leases, and their ends."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from zq.model.clock import ManualClock

from .client import Client, Doc, Reply, ids, new_job
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S

MISSING = "left out"

LEASE_MS = 30_000
"""Where nobody says anything else."""


async def claim(client: Client, queue: str = "default", **fields: Any) -> list[Doc]:
    """Claim now; the jobs."""
    reply = await ask(client, queue, **fields)
    assert reply.status == 200, reply.doc
    jobs: list[Doc] = reply.doc["jobs"]
    return jobs


async def ask(client: Client, queue: str = "default", **fields: Any) -> Reply:
    return await client.post(f"/queues/{queue}/claim", {"holder": "me"} | fields)


async def claim_one(client: Client, **fields: Any) -> Doc:
    (job,) = await claim(client, **fields)
    return job


async def until_claiming(client: Client, count: int) -> None:
    """Let the server get to the point where so many claims wait."""
    async with asyncio.timeout(PATIENCE_S):
        while client.site.server.engine.streams.claiming != count:
            await client.count()


async def test_a_claim_gets_the_next_jobs_with_token_and_deadline(client: Client) -> None:
    issued = await client.enqueue_many(3, payload={"n": 1})
    urgent = await client.enqueue(priority=0, payload="x" * 1_000)
    await client.enqueue(queue="other", priority=0)
    jobs = await claim(client, max=2)
    assert ids(jobs) == [urgent["id"], issued[0]]
    now = client.site.now
    for job in jobs:
        assert (job["status"], job["lease"], job["deliveries"]) == ("in_flight", 1, 1)
        assert (job["dequeued_at"], job["lease_until"]) == (now, now + LEASE_MS)
    assert [job["payload"] for job in jobs] == ["x" * 1_000, {"n": 1}]
    stored = await client.job(issued[0])
    assert (stored["status"], stored["lease_until"]) == ("in_flight", now + LEASE_MS)
    assert ids(await claim(client, max=1_000)) == issued[1:]
    assert await claim(client) == []


MB = 1_000_000
FITTING = 8
"""Payloads of a megabyte that one claim takes."""


async def test_a_claim_takes_so_many_bytes_and_leaves_the_rest_ready(client: Client) -> None:
    issued = [(await client.enqueue(payload="x" * MB))["id"] for _ in range(FITTING + 2)]
    small = (await client.enqueue())["id"]
    jobs = await claim(client, max=1_000)
    assert ids(jobs) == issued[:FITTING]
    assert {len(job["payload"]) for job in jobs} == {MB}
    assert await client.count(status="in_flight") == FITTING
    # What was left is where it was: no attempt, no delivery, and next in its turn.
    rest = await claim(client, max=1_000)
    assert ids(rest) == [*issued[FITTING:], small]
    assert [(job["lease"], job["attempts"]) for job in rest] == [(1, 0)] * 3


@pytest.mark.settings(max_payload=10 * MB, max_body=11 * MB)
async def test_a_payload_of_more_bytes_than_a_claim_takes_comes_alone(client: Client) -> None:
    small = (await client.enqueue(priority=1))["id"]
    large = (await client.enqueue(priority=2, payload="x" * 9 * MB))["id"]
    last = (await client.enqueue(priority=3))["id"]
    assert [ids(await claim(client, max=3)) for _ in range(3)] == [[small], [large], [last]]


async def test_claims_that_wait_get_what_others_leave(client: Client) -> None:
    asks = [asyncio.create_task(claim(client, max=1_000, wait_ms=30_000)) for _ in range(3)]
    await until_claiming(client, 3)
    stream = await client.take(queue="default", prefetch=1)
    count = 2 * FITTING + 5  # more than three can take before the fourth has its turn
    jobs = [new_job(payload="x" * MB)] * count
    issued = ids((await client.post("/jobs/bulk", {"jobs": jobs})).doc["jobs"])
    hands = await asyncio.gather(*asks)
    streamed = await stream.jobs(1)
    assert sorted(ids([job for hand in [*hands, streamed] for job in hand])) == issued
    assert max(map(len, hands)) <= FITTING


async def test_one_job_is_claimed_where_nothing_else_is_said(client: Client) -> None:
    await client.enqueue_many(2)
    assert len(await claim(client)) == 1


async def test_a_claimed_job_is_acknowledged_failed_or_deleted_like_any(client: Client) -> None:
    issued = await client.enqueue_many(4)
    jobs = await claim(client, max=4)
    reply = await client.post(f"/jobs/{issued[0]}/success", {"lease": jobs[0]["lease"]})
    assert reply.status == 204
    await client.succeed(issued[1])
    failed = await client.fail(issued[2], lease=1, retry_at=0)
    assert (failed["status"], "lease_until" in failed) == ("scheduled", False)
    await client.delete(f"/jobs/{issued[3]}")
    assert ids(await claim(client, max=4)) == [issued[2]]


@pytest.mark.parametrize("queue", ["a/b", "ü 'x", "100%", "a.b"])
async def test_any_name_of_a_queue_can_stand_in_the_path(client: Client, queue: str) -> None:
    job = await client.enqueue(queue=queue)
    assert ids(await claim(client, quote(queue, safe=""))) == [job["id"]]


@pytest.mark.parametrize(
    "fields",
    [
        {"holder": MISSING},
        {"holder": ""},
        {"holder": None},
        {"holder": 7},
        {"holder": "a\0b"},
        {"holder": "a\n"},
        {"holder": "x" * 257},
        {"max": 0},
        {"max": 1_001},
        {"max": "1"},
        {"lease_ms": 0},
        {"lease_ms": -1},
        {"lease_ms": 1.5},
        {"lease_ms": 2**32},
        {"wait_ms": -1},
        {"wait_ms": 30_001},
    ],
)
async def test_a_bad_claim_is_400_and_takes_nothing(client: Client, fields: Doc) -> None:
    await client.enqueue()
    body = {"holder": "h"} | fields
    sent = {name: value for name, value in body.items() if value != MISSING}
    reply = await client.post("/queues/default/claim", sent)
    assert (reply.status, reply.headers["zq-error"]) == (400, "invalid_request")
    assert next(iter(fields)) in reply.error
    assert await client.count(status="ready") == 1


async def test_a_claim_of_a_name_that_no_queue_can_have_is_400(client: Client) -> None:
    for name in ("a%2Cb", "%2A", "x%00y"):
        assert (await ask(client, name)).status == 400
    assert (await client.get("/queues/default/claim")).status == 405


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


async def set_queue(client: Client, queue: str = "default", **settings: Any) -> None:
    reply = await client.call("PUT", f"/queues/{queue}/settings", settings)
    assert reply.status == 200, reply.doc


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


# Extending and releasing


async def test_extending_moves_the_deadline_from_now_on(client: Client) -> None:
    job = await client.enqueue()
    taken = await claim_one(client, lease_ms=1_000)
    for body in ({"lease_ms": 1_000, "lease": taken["lease"]}, {"lease_ms": 1_000}):
        client.site.clock.advance(900)
        reply = await client.post(f"/jobs/{job['id']}/extend", body)
        assert (reply.status, reply.doc) == (200, {"lease_until": client.site.now + 1_000})
    bulk = await client.post("/jobs/extend", {"items": [{"id": job["id"]}], "lease_ms": 5_000})
    assert (bulk.status, bulk.doc) == (200, {"lease_until": client.site.now + 5_000})
    client.site.clock.advance(5_000)
    assert (await client.job(job["id"]))["status"] == "in_flight"
    client.site.clock.advance(1)
    await client.until(job["id"], status="ready")


async def test_a_lease_can_be_made_shorter(client: Client) -> None:
    job = await client.enqueue()
    await claim_one(client, lease_ms=60_000)
    assert (await client.post(f"/jobs/{job['id']}/extend", {"lease_ms": 10})).status == 200
    client.site.clock.advance(11)
    await client.until(job["id"], status="ready")


async def test_a_released_job_is_ready_at_once_in_its_place_and_at_no_cost(client: Client) -> None:
    first, second = await client.enqueue_many(2)
    await claim_one(client)
    assert (await client.send("POST", f"/jobs/{first}/release")).status == 204
    again = await claim_one(client)
    assert (again["id"], again["lease"], again["attempts"]) == (first, 2, 0)
    assert "stalls" not in again
    assert (await client.post("/jobs/release", {"items": [{"id": first}]})).status == 204
    assert ids(await claim(client, max=2)) == [first, second]


async def test_a_job_released_with_a_delay_is_scheduled(client: Client) -> None:
    job = await client.enqueue()
    taken = await claim_one(client)
    body = {"delay_ms": 5_000, "lease": taken["lease"]}
    assert (await client.post(f"/jobs/{job['id']}/release", body)).status == 204
    waiting = await client.job(job["id"])
    due = client.site.now + 5_000
    assert (waiting["status"], waiting["ready_at"], waiting["attempts"]) == ("scheduled", due, 0)
    assert await claim(client) == []
    client.site.clock.advance(5_000)
    await client.until(job["id"], status="ready")


async def test_a_released_job_takes_its_unique_key_back(client: Client) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "queued"}
    job = await client.enqueue(**unique)
    await claim_one(client)
    await client.send("POST", f"/jobs/{job['id']}/release")
    reply = await client.post("/jobs", {"queue": "default", "type": "t", "payload": 1} | unique)
    assert (reply.status, reply.doc["id"]) == (200, job["id"])


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/jobs/{id}/extend", {}),
        ("/jobs/{id}/extend", {"lease_ms": 0}),
        ("/jobs/{id}/extend", {"lease_ms": 2**32}),
        ("/jobs/{id}/release", {"delay_ms": -1}),
        ("/jobs/{id}/release", {"delay_ms": 2**64}),
        ("/jobs/extend", {"items": [], "lease_ms": 1}),
        ("/jobs/extend", {"items": [{"id": "{id}"}]}),
        ("/jobs/extend", {"items": [{"id": "{id}"}] * 2, "lease_ms": 1}),
        ("/jobs/extend", {"items": [{}], "lease_ms": 1}),
        ("/jobs/release", {"items": []}),
        ("/jobs/release", {}),
        ("/jobs/release", {"items": [{"id": "{id}", "lease": "x"}]}),
    ],
)
async def test_what_cannot_be_meant_is_400_and_changes_nothing(
    client: Client, target: str, body: Doc
) -> None:
    job = await client.enqueue()
    await claim_one(client)
    before = await client.job(job["id"])
    items = [
        {name: job["id"] if value == "{id}" else value for name, value in item.items()}
        for item in body.get("items", [])
    ]
    sent = body | {"items": items} if "items" in body else body
    reply = await client.post(target.replace("{id}", job["id"]), sent)
    assert (reply.status, reply.headers["zq-error"]) == (400, "invalid_request")
    assert await client.job(job["id"]) == before


@pytest.mark.settings(max_bulk_items=2)
async def test_too_many_items_are_413(client: Client) -> None:
    items = [{"id": str(number)} for number in range(3)]
    for target, more in (("/jobs/extend", {"lease_ms": 1}), ("/jobs/release", {})):
        assert (await client.post(target, {"items": items, **more})).status == 413


# Waiting


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


async def test_a_stopping_server_answers_claims_that_wait(site: Site, client: Client) -> None:
    waiting = asyncio.create_task(claim(client, wait_ms=30_000))
    await until_claiming(client, 1)
    await site.stop()
    assert await waiting == []
    await site.start()


# Claimants who go away


async def test_fifty_claims_whose_claimants_go_away_leave_nothing_behind(
    client: Client,
) -> None:
    body = b'{"holder":"h","wait_ms":30000}'
    head = b"POST /queues/default/claim HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\n\r\n"
    job = await client.enqueue(queue="other")
    for number in range(50):
        connection = await RawConnection.open(client.site.port)
        await connection.send(head % len(body) + body)
        await until_claiming(client, 1)
        await (connection.reset() if number % 2 else connection.close())
        await until_claiming(client, 0)
    engine = client.site.server.engine
    assert engine.streams.is_empty
    issued = await client.enqueue()
    assert (await client.job(issued["id"]))["status"] == "ready"
    assert (await client.job(job["id"]))["status"] == "ready"


async def test_a_job_claimed_for_who_has_gone_away_goes_back_at_once_and_free(
    client: Client,
) -> None:
    body = b'{"holder":"h","wait_ms":30000,"max":3}'
    head = b"POST /queues/default/claim HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\n\r\n"
    for number in range(30):
        connection = await RawConnection.open(client.site.port)
        await connection.send(head % len(body) + body)
        await until_claiming(client, 1)
        # Both arrive at about the same time, in either order.
        await asyncio.gather(connection.reset(), client.post("/jobs", new_job(payload=number)))
        await until_claiming(client, 0)
        async with asyncio.timeout(PATIENCE_S):
            while not (jobs := await claim(client, max=5)):
                # Its answer had been written: only the deadline tells that nobody has read it.
                client.site.clock.advance(LEASE_MS + 1)
        assert len(jobs) == 1
        await client.succeed(jobs[0]["id"])


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
