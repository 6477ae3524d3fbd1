"""Jobs that nobody takes in time expire: they are not delivered, and are kept for a while."""

import asyncio

import pytest

from .client import Client, Doc, new_job, without_body
from .streams import pause
from .test_settings import put

KEPT: Doc = {"retention": {"dead_ms": 60_000}}


async def test_a_job_with_a_time_to_live_expires_when_it_is_over(client: Client) -> None:
    now = client.site.now
    job = await client.enqueue(ttl_ms=1_000, **KEPT)
    assert job["expires_at"] == now + 1_000
    assert without_body(await client.job(job["id"])) == {
        name: value for name, value in job.items() if name not in ("duplicate", "folded")
    }
    client.site.clock.advance(999)
    assert (await client.job(job["id"]))["status"] == "ready"
    client.site.clock.advance(1)
    expired = await client.until(job["id"], status="expired")
    assert (expired["expired_at"], expired["purge_at"]) == (now + 1_000, now + 61_000)
    assert await client.jobs(status="expired") == [expired]
    assert await client.count(status="expired") == 1
    stream = await client.take(prefetch=2)
    await client.heartbeat(stream)
    client.site.clock.advance(60_000)
    await client.until_gone(job["id"])


async def test_the_time_of_a_queue_is_for_jobs_without_their_own(client: Client) -> None:
    await client.enqueue(queue="q")
    await put(client, "q", ttl_ms=500)
    now = client.site.now
    jobs = [new_job(queue="q"), new_job(queue="q", ttl_ms=70), new_job(queue="other")]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    times = [job.get("expires_at") for job in reply.doc["jobs"]]
    assert times == [now + 500, now + 70, None]
    await client.delete("/queues/q/settings")
    client.site.clock.advance(500)
    await client.until_count(2, status="expired")
    # The settings of a queue are for what comes after them.
    assert await client.count(queue="q", status="ready") == 1


async def test_the_time_to_live_begins_when_a_job_is_ready(client: Client) -> None:
    job = await client.enqueue(ready_at=client.site.now + 5_000, ttl_ms=100)
    assert job["expires_at"] == client.site.now + 5_100
    client.site.clock.advance(5_000)
    await client.until(job["id"], status="ready")
    client.site.clock.advance(100)
    await client.until(job["id"], status="expired")


@pytest.mark.parametrize("limits", [{"job": 100}, {"queue": 100}, {"queue": 70, "job": 100}])
@pytest.mark.parametrize("failed", [False, True])
async def test_the_time_to_live_of_a_postponed_job_begins_at_its_new_date(
    client: Client, limits: dict[str, int], failed: bool
) -> None:
    if "queue" in limits:
        await put(client, "q", ttl_ms=limits["queue"])
    own: Doc = {"ttl_ms": limits["job"]} if "job" in limits else {}
    job = await client.enqueue(queue="q", **own)
    if failed:
        stream = await client.take(prefetch=1)
        await stream.job()
        await client.fail(job["id"])
        await stream.close()
    date = client.site.now + 5_000
    changed = await client.change(job["id"], ready_at=date)
    assert (changed["status"], changed["expires_at"]) == ("scheduled", date + 100)
    client.site.clock.advance(4_999)
    assert (await client.job(job["id"]))["status"] == "scheduled"
    client.site.clock.advance(1)
    await client.until(job["id"], status="ready")
    client.site.clock.advance(100)
    await client.until(job["id"], status="expired")


async def test_a_job_that_runs_does_not_expire_but_is_not_delivered_again(client: Client) -> None:
    job = await client.enqueue(ttl_ms=100, **KEPT)
    other = await client.enqueue(ttl_ms=100)
    stream = await client.take(prefetch=2)
    await stream.jobs(2)
    client.site.clock.advance(500)
    assert await client.count(status="in_flight") == 2
    await client.succeed(other["id"])
    await stream.close()
    await client.until(job["id"], status="expired")
    again = await client.take(prefetch=2)
    await client.heartbeat(again)


async def test_a_failed_job_that_waits_too_long_for_its_next_try_expires(client: Client) -> None:
    job = await client.enqueue(ttl_ms=100)
    stream = await client.take(prefetch=1)
    await stream.job()
    await client.fail(job["id"], retry_at=client.site.now + 1_000)
    client.site.clock.advance(100)
    expired = await client.until(job["id"], status="expired")
    assert expired["attempts"] == 1


async def test_more_jobs_than_a_tick_ends_expire_and_those_behind_them_are_delivered(
    client: Client,
) -> None:
    await client.enqueue_many(2_500, ttl_ms=100, retention={"dead_ms": 0})
    alive = await client.enqueue()
    client.site.clock.advance(100)
    stream = await client.take(prefetch=3)
    assert (await stream.job())["id"] == alive["id"]
    await client.until_count(1)


async def test_what_expires_while_the_server_is_down_is_not_delivered_after(client: Client) -> None:
    job = await client.enqueue(ttl_ms=100)
    await client.site.stop()
    client.site.clock.jump(100)
    await client.site.start()
    stream = await client.take(prefetch=1)
    await client.heartbeat(stream)
    await client.until(job["id"], status="expired", attempts=0)


async def test_those_who_wait_for_an_expired_job_are_told_so(client: Client) -> None:
    job = await client.enqueue(ttl_ms=100)
    target = f"/jobs/{job['id']}/result"
    waits = asyncio.create_task(client.send("GET", f"{target}?wait_ms=30000"))
    while not len(client.site.server.engine.waiters):
        await pause()
    client.site.clock.advance(100)
    for reply in (await waits, await client.get(target)):
        assert (reply.status, reply.headers["zq-error"]) == (410, "job_expired")
        assert reply.doc["status"] == "expired"


@pytest.mark.parametrize("scope", ["queued", "active", "exists"])
async def test_the_key_of_an_expired_job_is_free(client: Client, scope: str) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": scope}
    job = await client.enqueue(ttl_ms=1, **unique)
    client.site.clock.advance(1)
    await client.until(job["id"], status="expired")
    assert (await client.enqueue(**unique))["duplicate"] is False


async def test_the_next_of_a_group_follows_one_that_has_expired(client: Client) -> None:
    first = await client.enqueue(group="g", ttl_ms=50)
    second = await client.enqueue(group="g")
    client.site.clock.advance(50)
    stream = await client.take(prefetch=2)
    assert (await stream.job())["id"] == second["id"]
    assert (await client.job(first["id"]))["status"] == "expired"


async def test_an_expired_job_is_finished(client: Client) -> None:
    job = await client.enqueue(ttl_ms=1, **KEPT)
    client.site.clock.advance(1)
    await client.until(job["id"], status="expired")
    assert (await client.patch(f"/jobs/{job['id']}", {"priority": 1})).status == 422
    assert (await client.send("POST", f"/jobs/{job['id']}/cancel")).status == 409
    assert (await client.send("POST", f"/jobs/{job['id']}/retry")).status == 409
    kept = await client.patch(f"/jobs/{job['id']}/retention", {"dead_ms": 5})
    assert kept.doc["purge_at"] == client.site.now + 5


@pytest.mark.parametrize("ttl_ms", [0, -1, 1.5, "5", 2**63])
async def test_a_time_to_live_that_cannot_be_is_400(client: Client, ttl_ms: object) -> None:
    reply = await client.post("/jobs", new_job(ttl_ms=ttl_ms))
    assert reply.status == 400
    assert await client.count() == 0
