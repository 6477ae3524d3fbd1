"""Unique keys: conflicts, owners, and when a key is dropped and comes back."""

import asyncio
from typing import Any

import pytest

from .client import Client, Doc, new_job, without_body

SCOPES = ["queued", "active", "exists"]
STATES = ["scheduled", "ready", "in_flight", "completed", "dead"]
CONFLICTS = {
    "queued": {"scheduled", "ready"},
    "active": {"scheduled", "ready", "in_flight"},
    "exists": set(STATES),
}


async def again(client: Client, scope: str = "queued", key: str = "k") -> tuple[int, str]:
    """Status and id that another enqueue with the key gets."""
    reply = await client.post("/jobs", new_job(unique_key=key, unique_while=scope))
    assert reply.status in (200, 201), reply.doc
    assert reply.doc["duplicate"] is (reply.status == 200)
    return reply.status, reply.doc["id"]


async def is_free(client: Client, scope: str = "exists", key: str = "k") -> bool:
    """Whether no job blocks the key. Takes it and gives it back by deletion."""
    status, job_id = await again(client, scope, key)
    if status == 201:
        assert (await client.delete(f"/jobs/{job_id}")).status == 204
    return status == 201


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("state", STATES)
async def test_the_incoming_scope_decides_what_conflicts(
    client: Client, scope: str, state: str
) -> None:
    # An owner whose own scope covers every state, so that only the incoming one matters.
    owner = await client.make(state, unique_key="k", unique_while="exists")
    status, job_id = await again(client, scope)
    if state in CONFLICTS[scope]:
        assert (status, job_id) == (200, owner)
    else:
        assert status == 201
        assert job_id != owner


async def test_a_new_owner_takes_the_key_over_from_a_living_one(client: Client) -> None:
    # Of a queue of its own, so that its stream does not take the new job.
    old = await client.make("in_flight", queue="old", unique_key="k", unique_while="exists")
    status, new = await again(client, "queued")
    assert status == 201
    assert await again(client, "exists") == (200, new)
    # The old owner's end no longer concerns the key.
    await client.succeed(old)
    assert await again(client, "exists") == (200, new)
    assert await again(client, "queued") == (200, new)


async def test_the_key_space_is_one_over_queues_and_types(client: Client) -> None:
    first = await client.enqueue(queue="a", type="s", unique_key="k")
    reply = await client.post("/jobs", new_job(queue="b", type="t", unique_key="k"))
    assert (reply.status, reply.doc["id"], reply.doc["queue"]) == (200, first["id"], "a")
    await client.enqueue(queue="a", type="s", unique_key="K")


async def test_keys_may_be_any_text(client: Client) -> None:
    for key in ("", " ", "a,b*?", "é🐝", "\x00", "k" * 2_048):
        job = await client.enqueue(unique_key=key)
        assert await again(client, key=key) == (200, job["id"])


async def test_a_queued_key_is_dropped_when_its_job_is_taken(client: Client) -> None:
    await client.make("in_flight", unique_key="k", unique_while="queued")
    for scope in SCOPES:
        assert await is_free(client, scope)


@pytest.mark.parametrize("end", ["completed", "dead"])
async def test_an_active_key_is_held_while_in_flight_and_dropped_at_the_end(
    client: Client, end: str
) -> None:
    job = await client.in_flight(
        unique_key="k", unique_while="active", retention={"completed_ms": 60_000}
    )
    assert await again(client, "active") == (200, job["id"])
    if end == "completed":
        await client.succeed(job["id"])
    else:
        await client.fail(job["id"], kill=True)
    assert await client.exists(job["id"])
    assert await is_free(client)


@pytest.mark.parametrize("end", ["completed", "dead"])
async def test_an_exists_key_is_held_until_the_job_is_purged(client: Client, end: str) -> None:
    owner = await client.make(end, unique_key="k", unique_while="exists")
    assert await again(client, "exists") == (200, owner)
    client.site.clock.advance(59_999)
    assert await again(client, "exists") == (200, owner)
    client.site.clock.advance(1)
    assert await is_free(client)


@pytest.mark.parametrize("scope", SCOPES)
async def test_deletion_drops_every_key(client: Client, scope: str) -> None:
    job = await client.enqueue(unique_key="k", unique_while=scope)
    await client.delete(f"/jobs/{job['id']}")
    assert await is_free(client)


@pytest.mark.parametrize("scope", SCOPES)
async def test_success_without_retention_drops_every_key(client: Client, scope: str) -> None:
    job = await client.in_flight(unique_key="k", unique_while=scope)
    await client.succeed(job["id"])
    assert await is_free(client)


async def test_an_active_key_stays_through_failures(client: Client) -> None:
    job = await client.in_flight(unique_key="k", unique_while="active")
    await client.fail(job["id"], retry_at=client.site.now + 60_000)
    for scope in SCOPES:
        assert await again(client, scope) == (200, job["id"])


async def test_a_queued_key_comes_back_with_a_retry(client: Client) -> None:
    job = await client.in_flight(unique_key="k")
    await client.fail(job["id"], retry_at=client.site.now + 60_000)
    assert await again(client) == (200, job["id"])


async def test_a_queued_key_comes_back_when_the_stream_ends(client: Client) -> None:
    job = await client.enqueue(unique_key="k")
    stream = await client.take()
    await stream.job()
    await stream.close()
    await client.until(job["id"], status="ready")
    assert await again(client) == (200, job["id"])


@pytest.mark.parametrize("crashed", [False, True])
async def test_a_queued_key_comes_back_with_a_restart(client: Client, crashed: bool) -> None:
    job = await client.in_flight(unique_key="k")
    await (client.site.crash() if crashed else client.site.restart())
    assert (await client.job(job["id"]))["status"] == "ready"
    assert await again(client) == (200, job["id"])


@pytest.mark.parametrize("how", ["failure", "disconnect", "restart", "crash"])
async def test_a_key_that_another_job_owns_by_then_does_not_come_back(
    client: Client, how: str
) -> None:
    # Of a queue of its own, so that its stream does not take the new job.
    old = await client.enqueue(queue="old", unique_key="k")
    stream = await client.take(queue="old")
    await stream.job()
    status, new = await again(client)
    assert status == 201
    match how:
        case "failure":
            await client.fail(old["id"], retry_at=client.site.now + 60_000)
        case "disconnect":
            await stream.close()
        case "restart":
            await client.site.restart()
        case "crash":
            await client.site.crash()
    state = "scheduled" if how == "failure" else "ready"
    if how != "failure":
        await client.until(old["id"], status=state)
    assert await again(client) == (200, new)
    # Nor does the end of the old job, which owns nothing, drop the key.
    await client.delete(f"/jobs/{old['id']}")
    assert await again(client) == (200, new)


async def test_a_stale_owner_never_blocks(client: Client) -> None:
    job = await client.enqueue(unique_key="k", unique_while="exists")
    await client.delete("/jobs")
    status, new = await again(client, "exists")
    assert status == 201
    assert new != job["id"]


@pytest.mark.settings(reaper_check_interval=3_600_000)
async def test_an_expired_owner_that_is_not_purged_yet_does_not_block(client: Client) -> None:
    await client.tire_the_reaper()
    await client.make("dead", unique_key="k", unique_while="exists")
    client.site.clock.advance(60_000)
    status, new = await again(client, "exists")
    assert status == 201
    assert await again(client, "exists") == (200, new)


async def test_a_duplicate_changes_nothing(client: Client) -> None:
    first = await client.enqueue(unique_key="k", payload=1, priority=5)
    later = client.site.now + 5_000
    second = new_job(unique_key="k", payload=2, priority=1, ready_at=later, retry_limit=9)
    reply = await client.post("/jobs", second)
    assert reply.status == 200
    stored = await client.job(first["id"])
    assert (stored["payload"], stored["priority"], stored["status"]) == (1, 5, "ready")
    assert "retry_limit" not in stored
    assert await client.count() == 1


async def test_a_duplicate_shows_the_owner_as_it_is_now(client: Client) -> None:
    owner = await client.make("in_flight", unique_key="k", unique_while="active")
    reply = await client.post("/jobs", new_job(unique_key="k", unique_while="active"))
    stored = await client.job(owner)
    assert reply.doc == without_body(stored) | {"duplicate": True, "folded": False}


@pytest.mark.parametrize("scope", SCOPES)
async def test_in_one_bulk_request_later_uses_are_duplicates_of_the_first(
    client: Client, scope: str
) -> None:
    keys = ["a", "b", "a", None, "a", "b"]
    jobs: list[Doc] = [
        new_job() if key is None else new_job(unique_key=key, unique_while=scope) for key in keys
    ]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201
    found = reply.doc["jobs"]
    assert [job["duplicate"] for job in found] == [False, False, True, False, True, True]
    assert found[2]["id"] == found[4]["id"] == found[0]["id"]
    assert found[5]["id"] == found[1]["id"]
    assert await client.count() == 3


async def test_a_bulk_request_sees_earlier_owners_and_its_own(client: Client) -> None:
    old = await client.enqueue(unique_key="old")
    taken = await client.in_flight(queue="other", unique_key="taken")
    jobs = [new_job(unique_key=key) for key in ("old", "taken", "taken", "new")]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    found = reply.doc["jobs"]
    assert [job["duplicate"] for job in found] == [True, False, True, False]
    assert found[0]["id"] == old["id"]
    assert found[1]["id"] == found[2]["id"] != taken["id"]


async def test_of_twenty_concurrent_enqueues_exactly_one_is_new(client: Client) -> None:
    for key in ("k1", "k2", "k3"):
        job = new_job(unique_key=key)
        replies = await asyncio.gather(*(client.post("/jobs", job) for _ in range(20)))
        assert sorted(reply.status for reply in replies) == [200] * 19 + [201]
        assert len({reply.doc["id"] for reply in replies}) == 1
    assert await client.count() == 3


async def test_concurrent_bulk_requests_share_their_keys(client: Client) -> None:
    bulk = {"jobs": [new_job(unique_key=f"k{number}") for number in range(50)]}
    replies = await asyncio.gather(*(client.post("/jobs/bulk", bulk) for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [200] * 9 + [201]
    assert await client.count() == 50


async def test_keys_survive_a_restart(client: Client) -> None:
    made = {
        scope: (await client.enqueue(unique_key=scope, unique_while=scope))["id"]
        for scope in SCOPES
    }
    await client.site.restart()
    for scope, job_id in made.items():
        assert await again(client, scope, scope) == (200, job_id)


async def test_an_answer_to_duplicates_repeats_results_up_to_a_bound(client: Client) -> None:
    large, small = "x" * 1_000_000, "y" * 1_000
    for key, result in (("small", small), ("large", large)):
        job = await client.in_flight(unique_key=key, unique_while="exists", queue=key)
        kept = {"completed_ms": 60_000}
        done = {"result": result, "retention": kept}
        assert (await client.post(f"/jobs/{job['id']}/success", done)).status == 204

    async def results(*keys: str) -> list[Any]:
        jobs = [new_job(unique_key=key, unique_while="exists") for key in keys]
        reply = await client.post("/jobs/bulk", {"jobs": jobs})
        assert reply.status == 200
        return [job.get("result") for job in reply.doc["jobs"]]

    assert await results("small", "large", "small") == [small, large, small]
    assert await results(*["small"] * 3, *["large"] * 17) == [small] * 3 + [None] * 17
