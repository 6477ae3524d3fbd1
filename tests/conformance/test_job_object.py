"""The fields of a job object, by its state and by the request."""

from typing import Any

import pytest

from .client import Client, Doc, as_read, new_job

ALWAYS = {"id", "type", "queue", "priority", "status", "ready_at", "attempts"}
PAYLOAD = {"payload", "created_at"}
ENQUEUED = {"duplicate", "folded"}
OPTIONS: Doc = {
    "retry_limit": 3,
    "backoff": {"exponent": 2.0, "base_ms": 100, "jitter_ms": 0},
    "retention": {"completed_ms": 60_000, "dead_ms": 60_000},
}
KEPT = {"retention": OPTIONS["retention"]}
BY_STATUS = {
    "scheduled": set(),
    "ready": set(),
    "in_flight": {"dequeued_at"},
    "completed": {"dequeued_at", "completed_at", "purge_at"},
    "dead": {"dequeued_at", "failed_at", "purge_at", "reason"},
    "cancelled": {"cancelled_at", "purge_at"},
}


async def test_an_enqueue_answers_the_job_without_payload_and_with_both_flags(
    client: Client,
) -> None:
    job = await client.enqueue(payload={"a": 1})
    assert set(job) == ALWAYS | ENQUEUED
    assert (job["duplicate"], job["folded"]) == (False, False)


async def test_a_bulk_enqueue_answers_jobs_of_the_same_shape(client: Client) -> None:
    reply = await client.post("/jobs/bulk", {"jobs": [new_job(), new_job(**OPTIONS)]})
    plain, rich = reply.doc["jobs"]
    assert set(plain) == ALWAYS | ENQUEUED
    assert set(rich) == ALWAYS | ENQUEUED | set(OPTIONS)


async def test_a_job_shows_what_was_asked_for(client: Client) -> None:
    job = await client.enqueue(queue="q", type="t", payload=[1], priority=9, ready_at=7, **OPTIONS)
    stored = await client.job(job["id"])
    expected: dict[str, Any] = {
        "id": job["id"],
        "queue": "q",
        "type": "t",
        "payload": [1],
        "priority": 9,
        "ready_at": 7,
        "attempts": 0,
        "status": "ready",
        "created_at": client.site.now,
    }
    assert stored == expected | OPTIONS


async def test_options_that_are_not_set_are_not_shown(client: Client) -> None:
    job = await client.enqueue(retention={"dead_ms": 5})
    assert set(await client.job(job["id"])) == ALWAYS | PAYLOAD | {"retention"}
    assert (await client.job(job["id"]))["retention"] == {"dead_ms": 5}


@pytest.mark.parametrize("status", BY_STATUS)
async def test_get_and_list_show_the_fields_of_the_state(client: Client, status: str) -> None:
    job_id = await client.make(status, payload={"a": 1})
    job = await client.job(job_id)
    assert job["status"] == status
    assert set(job) == ALWAYS | PAYLOAD | {"retention"} | BY_STATUS[status]
    assert await client.jobs() == [job]


async def test_a_delivered_job_is_complete_and_in_flight(client: Client) -> None:
    sent = await client.enqueue(payload={"a": [1]}, **OPTIONS)
    client.site.clock.advance(500)
    stream = await client.take()
    job = await stream.job()
    assert set(job) == ALWAYS | PAYLOAD | {"dequeued_at", "lease"} | set(OPTIONS)
    assert (job["id"], job["status"], job["payload"]) == (sent["id"], "in_flight", {"a": [1]})
    assert (job["attempts"], job["dequeued_at"]) == (0, client.site.now)
    assert as_read(job) == await client.job(job["id"])


async def test_a_failure_answers_the_job_without_payload(client: Client) -> None:
    taken = await client.in_flight(payload={"a": 1})
    client.site.clock.advance(1_000)
    job = await client.fail(taken["id"])
    assert set(job) == ALWAYS | {"dequeued_at", "failed_at"}
    assert (job["status"], job["attempts"]) == ("scheduled", 1)
    assert job["dequeued_at"] == client.site.now - 1_000
    assert job["failed_at"] == client.site.now


async def test_a_killed_job_answers_with_its_time_of_purge(client: Client) -> None:
    taken = await client.in_flight(**KEPT)
    job = await client.fail(taken["id"], kill=True)
    assert set(job) == ALWAYS | {"dequeued_at", "failed_at", "purge_at", "retention", "reason"}
    assert (job["status"], job["purge_at"]) == ("dead", client.site.now + 60_000)


async def test_a_patch_answers_the_job_without_payload_or_flags(client: Client) -> None:
    job = await client.enqueue(payload={"a": 1})
    assert set(await client.change(job["id"], priority=1)) == ALWAYS


async def test_the_times_of_the_last_delivery_and_failure_stay(client: Client) -> None:
    site = client.site
    taken = await client.in_flight(**KEPT)
    failed = await client.fail(taken["id"], retry_at=site.now + 1_000)
    site.clock.advance(5_000)
    again = await client.until(taken["id"], status="in_flight")
    assert (again["attempts"], again["failed_at"]) == (1, failed["failed_at"])
    assert again["dequeued_at"] > taken["dequeued_at"]
    await client.succeed(taken["id"])
    done = await client.job(taken["id"])
    assert set(done) == ALWAYS | PAYLOAD | {"retention", "failed_at"} | BY_STATUS["completed"]
    assert (done["completed_at"], done["purge_at"]) == (site.now, site.now + 60_000)


async def test_a_returned_job_keeps_its_time_of_delivery(client: Client) -> None:
    await client.enqueue()
    stream = await client.take()
    taken = await stream.job()
    await stream.close()
    job = await client.until(taken["id"], status="ready")
    assert set(job) == ALWAYS | PAYLOAD | {"dequeued_at"}
    assert job["dequeued_at"] == taken["dequeued_at"]


async def test_a_unique_key_is_shown_with_its_scope(client: Client) -> None:
    job = await client.enqueue(unique_key="k")
    assert set(job) == ALWAYS | ENQUEUED | {"unique_key", "unique_while"}
    stored = await client.job(job["id"])
    assert (stored["unique_key"], stored["unique_while"]) == ("k", "queued")
    for scope in ("queued", "active", "exists"):
        job = await client.enqueue(unique_key=scope, unique_while=scope)
        assert (await client.job(job["id"]))["unique_while"] == scope


async def test_a_duplicate_answers_the_job_that_exists(client: Client) -> None:
    first = await client.enqueue(unique_key="k", priority=3, payload="first")
    reply = await client.post("/jobs", new_job(unique_key="k", priority=9, payload="second"))
    assert (reply.status, reply.doc) == (200, first | {"duplicate": True})
    assert (await client.job(first["id"]))["payload"] == "first"
