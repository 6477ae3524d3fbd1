"""Taking jobs without a stream: the jobs of a claim, how many they are, and what is refused."""

import asyncio
from urllib.parse import quote

import pytest

from .claims import LEASE_MS, ask, claim, until_claiming
from .client import Client, Doc, ids, new_job

MISSING = "left out"


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


@pytest.mark.settings(max_bulk_bytes=32 * MB)
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


async def test_a_bad_claim_is_400_and_takes_nothing(client: Client) -> None:
    await client.enqueue()
    cases: list[Doc] = [
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
    ]
    for fields in cases:
        body = {"holder": "h"} | fields
        sent = {name: value for name, value in body.items() if value != MISSING}
        reply = await client.post("/queues/default/claim", sent)
        assert (reply.status, reply.headers["zq-error"]) == (400, "invalid_request"), fields
        assert next(iter(fields)) in reply.error
        assert await client.count(status="ready") == 1, fields


async def test_a_claim_of_a_name_that_no_queue_can_have_is_400(client: Client) -> None:
    for name in ("a%2Cb", "%2A", "x%00y"):
        assert (await ask(client, name)).status == 400
    assert (await client.get("/queues/default/claim")).status == 405
