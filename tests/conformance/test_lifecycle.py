"""Every move that a job can make, the order of delivery, and when a job dies."""

import pytest

from .client import Client, as_read, ids

FAST = {"exponent": 0.0, "base_ms": 0, "jitter_ms": 0}
"""A back-off of one second, whatever the attempt."""


async def test_a_job_without_ready_at_is_ready_now(client: Client) -> None:
    job = await client.enqueue()
    assert (job["status"], job["ready_at"]) == ("ready", client.site.now)


async def test_a_past_ready_at_is_kept_as_given(client: Client) -> None:
    for ready_at in (0, 12_345, client.site.now):
        job = await client.enqueue(ready_at=ready_at)
        assert (job["status"], job["ready_at"]) == ("ready", ready_at)


async def test_a_future_ready_at_schedules(client: Client) -> None:
    ready_at = client.site.now + 1
    job = await client.enqueue(ready_at=ready_at)
    assert (job["status"], job["ready_at"]) == ("scheduled", ready_at)


async def test_a_scheduled_job_is_promoted_when_due_and_not_before(client: Client) -> None:
    ready_at = client.site.now + 10_000
    job = await client.enqueue(ready_at=ready_at)
    client.site.clock.advance(9_999)
    stream = await client.take()
    await client.enqueue()
    assert (await stream.job())["id"] != job["id"]
    assert (await client.job(job["id"]))["status"] == "scheduled"
    client.site.clock.advance(1)
    promoted = await client.until(job["id"], status="ready")
    assert promoted["ready_at"] == ready_at


async def test_a_waiting_stream_gets_a_job_the_moment_it_is_due(client: Client) -> None:
    stream = await client.take()
    job = await client.enqueue(ready_at=client.site.now + 1_000)
    client.site.clock.advance(1_000)
    assert (await stream.job())["id"] == job["id"]


async def test_an_earlier_schedule_overtakes_a_later_one(client: Client) -> None:
    stream = await client.take(prefetch=5)
    late = await client.enqueue(ready_at=client.site.now + 2_000)
    early = await client.enqueue(ready_at=client.site.now + 1_000)
    client.site.clock.advance(1_000)
    assert (await stream.job())["id"] == early["id"]
    client.site.clock.advance(1_000)
    assert (await stream.job())["id"] == late["id"]


async def test_a_patch_to_null_or_the_past_makes_a_scheduled_job_ready(client: Client) -> None:
    site = client.site
    for ready_at, expected in [(None, site.now), (site.now, site.now), (5, 5)]:
        job = await client.enqueue(ready_at=site.now + 60_000)
        changed = await client.change(job["id"], ready_at=ready_at)
        assert (changed["status"], changed["ready_at"]) == ("ready", expected)


async def test_a_patch_to_the_future_schedules_a_ready_job(client: Client) -> None:
    stream = await client.take(queue="other")
    job = await client.enqueue()
    later = client.site.now + 1_000
    changed = await client.change(job["id"], ready_at=later, queue="other")
    assert (changed["status"], changed["ready_at"]) == ("scheduled", later)
    client.site.clock.advance(1_000)
    assert (await stream.job())["id"] == job["id"]


async def test_success_without_retention_removes_the_job_and_its_history(client: Client) -> None:
    job = await client.in_flight()
    await client.fail(job["id"], retry_at=0)
    await client.until(job["id"], status="in_flight")
    await client.succeed(job["id"])
    assert not await client.exists(job["id"])
    assert (await client.get(f"/jobs/{job['id']}/errors")).status == 404
    assert (await client.get("/queues")).doc == {"queues": []}


async def test_success_with_retention_completes_the_job(client: Client) -> None:
    job = await client.in_flight(retention={"completed_ms": 5_000})
    client.site.clock.advance(100)
    await client.succeed(job["id"])
    done = await client.job(job["id"])
    now = client.site.now
    assert (done["status"], done["completed_at"], done["purge_at"]) == (
        "completed",
        now,
        now + 5_000,
    )


async def test_a_failure_reschedules_by_the_backoff(client: Client) -> None:
    job = await client.in_flight(backoff=FAST)
    failed = await client.fail(job["id"])
    assert (failed["status"], failed["attempts"]) == ("scheduled", 1)
    assert (failed["failed_at"], failed["ready_at"]) == (client.site.now, client.site.now + 1_000)
    client.site.clock.advance(1_000)
    again = await client.until(job["id"], status="in_flight")
    assert again["attempts"] == 1


async def test_retry_at_overrides_backoff_and_limit(client: Client) -> None:
    job = await client.in_flight(retry_limit=0)
    retry_at = client.site.now + 77_000
    failed = await client.fail(job["id"], retry_at=retry_at)
    assert (failed["status"], failed["ready_at"], failed["attempts"]) == ("scheduled", retry_at, 1)


async def test_a_retry_at_in_the_past_is_scheduled_then_promoted_at_once(client: Client) -> None:
    job = await client.in_flight()
    failed = await client.fail(job["id"], retry_at=5)
    assert (failed["status"], failed["ready_at"]) == ("scheduled", 5)
    again = await client.until(job["id"], status="in_flight")
    assert (again["attempts"], again["ready_at"]) == (1, 5)


async def test_kill_overrides_retry_at_and_limit(client: Client) -> None:
    job = await client.in_flight()
    dead = await client.fail(job["id"], kill=True, retry_at=client.site.now + 5)
    assert (dead["status"], dead["attempts"]) == ("dead", 1)
    assert dead["purge_at"] == client.site.now + 604_800_000


async def test_a_dead_job_without_retention_is_deleted_but_still_answered(client: Client) -> None:
    job = await client.in_flight(retention={"dead_ms": 0})
    dead = await client.fail(job["id"], kill=True)
    assert dead["status"] == "dead"
    assert "purge_at" not in dead
    assert not await client.exists(job["id"])


async def test_a_job_whose_stream_ends_is_ready_as_it_was(client: Client) -> None:
    sent = await client.enqueue(priority=7, ready_at=5)
    stream = await client.take()
    taken = await stream.job()
    client.site.clock.advance(1_000)
    await stream.close()
    returned = await client.until(sent["id"], status="ready")
    assert returned == as_read(taken) | {"status": "ready"}


@pytest.mark.parametrize("status", ["scheduled", "ready", "in_flight", "completed", "dead"])
async def test_any_job_can_be_deleted(client: Client, status: str) -> None:
    job_id = await client.make(status)
    reply = await client.delete(f"/jobs/{job_id}")
    assert (reply.status, reply.body) == (204, b"")
    assert not await client.exists(job_id)
    assert (await client.delete(f"/jobs/{job_id}")).status == 404


@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_a_job_dies_when_attempts_exceed_its_limit(client: Client, limit: int) -> None:
    job = await client.in_flight(retry_limit=limit, backoff=FAST)
    for attempt in range(1, limit + 1):
        failed = await client.fail(job["id"])
        assert (failed["status"], failed["attempts"]) == ("scheduled", attempt)
        client.site.clock.advance(1_000)
        await client.until(job["id"], status="in_flight")
    dead = await client.fail(job["id"])
    assert (dead["status"], dead["attempts"]) == ("dead", limit + 1)


async def test_the_default_limit_is_26_executions(client: Client) -> None:
    job = await client.in_flight(backoff=FAST)
    executions = 1
    while (await client.fail(job["id"]))["status"] == "scheduled":
        client.site.clock.advance(1_000)
        await client.until(job["id"], status="in_flight")
        executions += 1
    assert executions == 26


async def test_a_retry_past_the_limit_dies_on_the_next_plain_failure(client: Client) -> None:
    job = await client.in_flight(retry_limit=0)
    for attempt in (1, 2):
        failed = await client.fail(job["id"], retry_at=0)
        assert (failed["status"], failed["attempts"]) == ("scheduled", attempt)
        await client.until(job["id"], status="in_flight", attempts=attempt)
    assert (await client.fail(job["id"]))["status"] == "dead"


async def test_server_defaults_apply_at_the_moment_of_the_failure(client: Client) -> None:
    job = await client.enqueue()
    await client.site.restart(default_retry_limit=0, default_dead_job_retention=1_000)
    stream = await client.take()
    await stream.job()
    dead = await client.fail(job["id"])
    assert (dead["status"], dead["purge_at"]) == ("dead", client.site.now + 1_000)


# Order of delivery


async def drained(client: Client, count: int, queue: str | None = None) -> list[str]:
    """The ids of the next `count` jobs in the order of their delivery."""
    stream = await client.take(prefetch=1, queue=queue)
    delivered = []
    for _ in range(count):
        job = await stream.job()
        delivered.append(job["id"])
        await client.succeed(job["id"])
    return delivered


async def test_lower_priority_numbers_go_first_and_then_older_ids(client: Client) -> None:
    jobs = [await client.enqueue(priority=number) for number in (5, 0, 65535, 5, 0)]
    expected = [jobs[1], jobs[4], jobs[0], jobs[3], jobs[2]]
    assert await drained(client, 5) == ids(expected)


async def test_order_holds_across_queues(client: Client) -> None:
    spec = [("a", 2), ("b", 1), ("a", 1), ("c", 0), ("b", 2)]
    jobs = [await client.enqueue(queue=queue, priority=priority) for queue, priority in spec]
    assert await drained(client, 4, queue="a,b") == ids([jobs[1], jobs[2], jobs[0], jobs[4]])


async def test_one_batch_is_delivered_in_order_too(client: Client) -> None:
    jobs = [await client.enqueue(priority=number) for number in (3, 1, 2)]
    stream = await client.take(prefetch=0)
    assert ids(await stream.jobs(3)) == ids([jobs[1], jobs[2], jobs[0]])


async def test_ready_at_never_decides_the_order_of_ready_jobs(client: Client) -> None:
    first = await client.enqueue(ready_at=client.site.now)
    second = await client.enqueue(ready_at=5)
    assert await drained(client, 2) == ids([first, second])


async def test_retried_promoted_and_returned_jobs_go_back_to_their_place(client: Client) -> None:
    retried = await client.in_flight()
    await client.fail(retried["id"], retry_at=client.site.now + 1_000)
    promoted = await client.enqueue(queue="q", ready_at=client.site.now + 1_000)
    returned = await client.enqueue(queue="q")
    stream = await client.take(queue="q")
    await stream.job()
    await client.change(retried["id"], queue="q")
    await client.enqueue(queue="q")
    await stream.close()
    await client.until(returned["id"], status="ready")
    client.site.clock.advance(1_000)
    await client.until(retried["id"], status="ready")
    await client.until(promoted["id"], status="ready")
    assert await drained(client, 3, queue="q") == ids([retried, promoted, returned])


async def test_patching_priority_or_queue_repositions_at_once(client: Client) -> None:
    jobs = [await client.enqueue(queue="a") for _ in range(3)]
    await client.change(jobs[2]["id"], priority=1)
    await client.change(jobs[0]["id"], queue="b")
    moved = await client.enqueue(queue="b", priority=0)
    await client.change(moved["id"], queue="a")
    assert await drained(client, 3, queue="a") == ids([moved, jobs[2], jobs[1]])
    assert await drained(client, 1, queue="b") == ids(jobs[:1])
