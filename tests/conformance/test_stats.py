"""Statistics of queues: jobs, ages, and traffic."""

from .client import Client, Doc, new_job
from .test_budgets import put as put_budget
from .test_settings import put
from .test_way_back import device_of, send

NONE = {
    "scheduled": 0,
    "ready": 0,
    "in_flight": 0,
    "completed": 0,
    "dead": 0,
    "cancelled": 0,
}
QUIET = {"total": 0, "per_second_1m": 0, "per_second_5m": 0}


async def stats(client: Client, queue: str) -> Doc:
    reply = await client.get(f"/queues/{queue}/stats")
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    listed = (await client.get("/stats")).doc["queues"]
    assert [each for each in listed if each["queue"] == doc["queue"]] in ([doc], [])
    return doc


def counts(doc: Doc) -> Doc:
    """Those that are not 0. Every status is there."""
    assert NONE.keys() <= doc["counts"].keys()
    return {status: n for status, n in doc["counts"].items() if n}


async def test_jobs_are_counted_by_status(client: Client) -> None:
    for status in NONE:
        await client.make(status, queue=f"for-{status}")
        assert counts(await stats(client, f"for-{status}")) == {status: 1}
    everything = (await client.get("/stats")).doc["queues"]
    assert [each["queue"] for each in everything] == sorted(f"for-{status}" for status in NONE)


async def test_what_is_hidden_from_readers_is_not_counted(client: Client) -> None:
    await client.make("dead", retention={"dead_ms": 50})
    assert counts(await stats(client, "default")) == {"dead": 1}
    client.site.clock.advance(50)
    assert counts(await stats(client, "default")) == {}


async def test_a_queue_without_jobs_and_traffic_is_empty_and_not_listed(client: Client) -> None:
    doc = await stats(client, "nothing")
    assert "oldest_ready_age_ms" not in doc
    assert counts(doc) == {}
    assert [doc[name] for name in ("deliveries", "completions", "failures")] == [QUIET] * 3
    assert (await client.get("/stats")).doc == {"queues": []}


async def test_a_paused_queue_is_listed_also_while_it_is_empty(client: Client) -> None:
    await client.call("PUT", "/queues/held/settings", {"paused": True})
    await client.call("PUT", "/queues/other/settings", {"rate": 5})
    (only,) = (await client.get("/stats")).doc["queues"]
    assert (only["queue"], only["counts"]["ready"]) == ("held", 0)


async def test_a_queue_may_have_any_name_that_a_queue_can_have(client: Client) -> None:
    await client.enqueue(queue="a/b c")
    assert counts(await stats(client, "a%2Fb%20c")) == {"ready": 1}
    assert (await client.get("/queues/a,b/stats")).status == 400
    assert (await client.get("/queues/a/stats", limit=1)).status == 400
    assert (await client.get("/stats", queue="a")).status == 400


async def test_the_age_is_that_of_the_job_that_has_been_ready_for_longest(client: Client) -> None:
    clock = client.site.clock
    await client.enqueue(queue="q", priority=9)
    clock.advance(1_000)
    await client.enqueue(queue="q", priority=1)
    await client.enqueue(queue="other", ready_at=client.site.now + 500)
    clock.advance(2_000)
    assert (await stats(client, "q"))["oldest_ready_age_ms"] == 3_000
    await client.until_count(1, queue="other", status="ready")
    assert (await stats(client, "other"))["oldest_ready_age_ms"] == 1_500


async def test_a_head_that_was_retried_does_not_hide_an_older_one(client: Client) -> None:
    stream = await client.take(queue="q")
    first = await client.enqueue(queue="q")
    assert (await stream.job())["id"] == first["id"]
    await stream.close()
    await client.until_count(1, queue="q", status="ready")
    stream = await client.take(queue="q")
    await stream.job()
    second = await client.enqueue(queue="q")
    client.site.clock.advance(1_000)
    await client.fail(first["id"], retry_at=client.site.now + 50)
    assert (await stream.job())["id"] == second["id"]
    await client.enqueue(queue="q")
    client.site.clock.advance(4_000)
    await client.until(first["id"], status="ready")
    assert (await stats(client, "q"))["oldest_ready_age_ms"] == 4_000


async def test_jobs_that_wait_for_their_key_or_a_budget_are_as_old_as_others(
    client: Client,
) -> None:
    await put_budget(client, "b", 1)
    for queue, fields in (("fair", {"fair_key": "a"}), ("paid", {"budgets": [{"key": "b"}]})):
        await client.enqueue(queue=queue, priority=9, **fields)
        client.site.clock.advance(1_000)
        await client.enqueue(queue=queue, priority=1, **fields)
        client.site.clock.advance(2_000)
        assert (await stats(client, queue))["oldest_ready_age_ms"] == 3_000
    # An older one that waits for nothing counts, too, and so does a line that nobody can pay for.
    await client.enqueue(queue="paid", priority=7)
    client.site.clock.advance(1_000)
    assert (await stats(client, "paid"))["oldest_ready_age_ms"] == 4_000
    stream = await client.take(queue="paid", prefetch=9)
    await stream.jobs(2)
    assert (await stats(client, "paid"))["oldest_ready_age_ms"] == 4_000


async def test_deliveries_completions_and_failures_are_counted_with_their_rates(
    client: Client,
) -> None:
    ids = await client.enqueue_many(6, queue="q")
    stream = await client.take(prefetch=6)
    await stream.jobs(6)
    await client.succeed(*ids[:3])
    await client.fail(ids[3], retry_at=2**50)
    await client.fail(ids[4], kill=True)

    doc = await stats(client, "q")
    assert doc["deliveries"] == {"total": 6, "per_second_1m": 0.1, "per_second_5m": 0.02}
    assert doc["completions"] == {"total": 3, "per_second_1m": 0.05, "per_second_5m": 0.01}
    assert doc["failures"] == {"total": 2, "per_second_1m": 0.033, "per_second_5m": 0.007}

    client.site.clock.advance(59_000)
    assert (await stats(client, "q"))["deliveries"]["per_second_1m"] == 0.1
    client.site.clock.advance(10_000)
    later = (await stats(client, "q"))["deliveries"]
    assert (later["total"], later["per_second_1m"], later["per_second_5m"]) == (6, 0, 0.02)
    client.site.clock.advance(300_000)
    assert (await stats(client, "q"))["deliveries"] == {**QUIET, "total": 6}


async def test_kept_completions_count_like_those_that_are_deleted(client: Client) -> None:
    await client.make("completed", queue="q")
    await client.make("completed", queue="q", retention={"completed_ms": 0})
    assert (await stats(client, "q"))["completions"]["total"] == 2


async def test_a_queue_that_has_run_empty_is_listed_for_as_long_as_its_traffic_counts(
    client: Client,
) -> None:
    taken = await client.in_flight(queue="q")
    await client.succeed(taken["id"])
    assert [each["queue"] for each in (await client.get("/stats")).doc["queues"]] == ["q"]
    client.site.clock.advance(400_000)
    assert (await client.get("/stats")).doc == {"queues": []}


async def test_steady_traffic_has_its_rate(client: Client) -> None:
    stream = await client.take(prefetch=10)
    for _ in range(90):
        many = await client.enqueue_many(2)
        await stream.jobs(2)
        await client.succeed(*many)
        client.site.clock.advance(1_000)
    doc = await stats(client, "default")
    assert 1.95 <= doc["completions"]["per_second_1m"] <= 2.05
    assert doc["completions"]["per_second_5m"] == 0.6


async def test_a_queue_is_counted_by_what_is_asked_of_many(client: Client) -> None:
    jobs = [new_job(queue=f"q{number:04}") for number in range(1_500)]
    assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201
    client.site.clock.advance(70)
    everything = (await client.get("/stats")).doc["queues"]
    assert [each["queue"] for each in everything] == [job["queue"] for job in jobs]
    assert {each["oldest_ready_age_ms"] for each in everything} == {70}


async def test_a_queue_has_its_state_its_workers_and_whether_it_is_paused(client: Client) -> None:
    async def state(queue: str) -> Doc:
        names = ("state", "state_text", "workers", "paused")
        found = await stats(client, queue)
        return {name: found[name] for name in names if name in found}

    await client.enqueue_many(3, queue="alone")
    await client.enqueue(queue="held")
    await put(client, "held", paused=True, pause_reason="wrong list")
    assert await state("alone") == {"workers": 0}
    client.site.clock.advance(60_000)
    assert await state("alone") == {"state": "no_worker", "state_text": "3 waiting", "workers": 0}
    held = {"state": "paused", "state_text": "(wrong list), 1 waiting", "paused": True}
    assert await state("held") == held | {"workers": 0}
    assert await state("nowhere") == {"workers": 0}
    await client.take(queue="alone", prefetch=9)
    assert (await state("alone"))["workers"] == 1


async def test_a_queue_whose_jobs_leave_needs_no_worker(client: Client) -> None:
    """Its jobs wait for a device that is away: a worker would get none of them."""
    device = await device_of(client)
    await send(client, 1, 2)
    client.site.clock.advance(600_000)
    found = await stats(client, "to%2Fd1%2Fcommands")
    assert (found["counts"]["ready"], found["workers"]) == (2, 0)
    assert "state" not in found

    # The first answer is lost, and so the device is away with a job on its way to it.
    await device.ask(limit=1)
    client.site.clock.advance(7_200_000)
    assert "state" not in await stats(client, "to%2Fd1%2Fcommands")
    assert (await client.get("/stuck")).doc == {"jobs": []}
    await client.site.restart()
    client.site.clock.advance(600_000)
    assert "state" not in await stats(client, "to%2Fd1%2Fcommands")
