"""Why a job waits: the facts come from the store and from the streams."""

from zq.features.waits.model import Canceller, WaitFacts, WaitingJob, wait_reasons
from zq.model.job import JobRecord
from zq.model.lifecycle import Status

from .client import Client, Doc
from .test_budgets import IN_FLIGHT, a_second
from .test_budgets import put as put_budget
from .test_settings import put
from .test_way_back import device_of, send


async def why(client: Client, job_id: str) -> list[Doc]:
    reply = await client.get(f"/jobs/{job_id}/why")
    assert reply.status == 200, reply.doc
    doc = reply.doc
    assert (doc["id"], doc["status"]) == (job_id, (await client.job(job_id))["status"])
    reasons: list[Doc] = doc["reasons"]
    assert all(reason["text"] for reason in reasons)
    return reasons


async def codes(client: Client, job_id: str) -> list[str]:
    return [reason["code"] for reason in await why(client, job_id)]


async def test_a_job_that_nobody_takes_says_so_with_the_jobs_ahead(client: Client) -> None:
    later = (await client.enqueue(queue="q", priority=9))["id"]
    same = (await client.enqueue(queue="q", priority=9))["id"]
    await client.enqueue(queue="q", priority=1)
    await client.enqueue(queue="other", priority=1)
    await client.take(queue="unrelated")
    nobody, ahead = await why(client, same)
    assert (nobody["code"], nobody["queue"]) == ("no_worker", "q")
    assert (ahead["code"], ahead["queue"], ahead["count"]) == ("ahead", "q", 2)
    assert (await why(client, later))[1]["count"] == 1


async def test_scheduled_jobs_are_listed_with_the_next_one_first_page_by_page(
    client: Client,
) -> None:
    assert (await client.get("/scheduled")).doc == {"jobs": []}
    now = client.site.now
    times = (9_000, 5_000, 7_000, 5_000, 5_000)
    ids = [(await client.enqueue(queue="q", ready_at=now + ms))["id"] for ms in times]
    await client.enqueue(queue="q")
    expected = [ids[n] for n in (1, 3, 4, 2, 0)]
    found: list[Doc] = []
    after: dict[str, str] = {}
    while True:
        page = (await client.get("/scheduled", limit=2, **after)).doc
        found += page["jobs"]
        if "next" not in page:
            break
        # What is gone by then leaves no gap, and what comes behind it is not left out.
        await client.send("DELETE", f"/jobs/{page['jobs'][-1]['id']}")
        after = {"after": page["next"]}
    assert [job["id"] for job in found] == expected
    first = {"id": ids[1], "queue": "q", "type": "test", "priority": found[0]["priority"]}
    assert found[0] == first | {"ready_at": now + 5_000, "attempts": 0}
    for wrong in ({"after": "x"}, {"after": f"9-{'Z' * 26}"}, {"limit": 0}, {"limit": 501}):
        assert (await client.get("/scheduled", **wrong)).status == 400


async def test_a_worker_with_a_full_window_is_busy_and_a_drained_one_too(client: Client) -> None:
    stream = await client.take(queue="q", headers={"worker-id": "w"})
    first, second = await client.enqueue_many(2, queue="q")
    assert (await stream.job())["id"] == first
    (busy,) = await why(client, second)
    assert (busy["code"], busy["count"]) == ("workers_busy", 1)
    (running,) = await why(client, first)
    assert (running["code"], running["worker"]) == ("in_flight", "w")
    await client.send("POST", "/workers/w/drain")
    await client.succeed(first)
    (drained,) = await why(client, second)
    assert drained["code"] == "workers_busy"
    assert drained["text"].endswith("1 drained")


async def test_a_job_that_leaves_waits_for_no_worker(client: Client) -> None:
    device = await device_of(client)
    first, second = await send(client, 1, 2)
    leaves, ahead = await why(client, second)
    assert (leaves["code"], leaves["queue"], ahead["code"]) == ("leaves", "to/d1/commands", "ahead")
    assert "no worker here gets them" in leaves["text"]

    await device.ask(limit=1)
    (under_way,) = await why(client, first)
    assert under_way["code"] == "in_flight"
    assert "on its way to another server" in under_way["text"]
    assert await codes(client, second) == ["leaves"]


async def test_a_worker_of_all_queues_takes_from_each(client: Client) -> None:
    await put(client, "q", paused=True)
    await client.take()
    job = await client.enqueue(queue="q")
    (paused,) = await why(client, job["id"])
    assert (paused["code"], paused["queue"]) == ("paused", "q")


async def test_a_claimed_job_names_its_claimant_and_its_deadline(client: Client) -> None:
    job = await client.enqueue(queue="q")
    claim = {"holder": "robot", "max": 1, "lease_ms": 5_000}
    assert (await client.post("/queues/q/claim", claim)).status == 200
    (running,) = await why(client, job["id"])
    assert (running["worker"], running["until"]) == ("robot", client.site.now + 5_000)


async def test_a_job_of_a_group_names_the_one_before_it(client: Client) -> None:
    await client.take(queue="q", prefetch=9)
    first, second, third = await client.enqueue_many(3, queue="q", group="g")
    await client.until(first, status="in_flight")
    for waiting in (second, third):
        (group,) = await why(client, waiting)
        assert (group["code"], group["job"]) == ("group", first)


async def test_a_job_without_tokens_names_its_budget_and_when_it_can_pay(client: Client) -> None:
    await put_budget(client, "slots", 2, IN_FLIGHT)
    await put_budget(client, "pace", 1, a_second(1))
    await client.take(queue="q", prefetch=9)
    draws = [{"key": "slots", "cost": 2}, {"key": "pace"}]
    first, second, third = await client.enqueue_many(3, queue="q", budgets=draws)
    await client.until(first, status="in_flight")
    slots, pace = await why(client, second)
    assert (slots["code"], slots["budget"]) == ("budget", "slots")
    assert "until" not in slots
    assert (pace["budget"], pace["until"]) == ("pace", client.site.now + 1_000)
    ahead = (await why(client, third))[-1]
    assert (ahead["code"], ahead["count"]) == ("ahead", 1)


async def test_a_queue_at_its_limits_says_which_and_when_the_rate_opens(client: Client) -> None:
    await put(client, "q", concurrency=1)
    await put(client, "slow", rate=1)
    await client.take(prefetch=9)
    first, second = await client.enqueue_many(2, queue="q")
    await client.until(first, status="in_flight")
    (full,) = await why(client, second)
    assert (full["code"], full["count"]) == ("concurrency", 1)
    quick, slow = await client.enqueue_many(2, queue="slow")
    await client.until(quick, status="in_flight")
    (rate,) = await why(client, slow)
    assert (rate["code"], rate["until"]) == ("rate", client.site.now + 1_000)


async def test_a_job_waits_for_its_time_or_backs_off(client: Client) -> None:
    later = client.site.now + 60_000
    job = await client.enqueue(ready_at=later)
    (scheduled,) = await why(client, job["id"])
    assert (scheduled["code"], scheduled["until"]) == ("scheduled", later)
    failed = await client.in_flight(queue="q")
    ready_at = (await client.fail(failed["id"]))["ready_at"]
    (backing_off,) = await why(client, failed["id"])
    assert backing_off["code"] == "backing_off"
    assert (backing_off["until"], backing_off["count"]) == (ready_at, 1)


async def test_a_finished_job_waits_for_nothing_and_an_unknown_one_is_404(client: Client) -> None:
    for status in ("completed", "dead", "cancelled"):
        assert await codes(client, await client.make(status)) == ["finished"]
    reply = await client.get(f"/jobs/{'0' * 26}/why")
    assert (reply.status, reply.headers["zq-error"]) == (404, "job_not_found")
    job = await client.enqueue()
    assert (await client.get(f"/jobs/{job['id']}/why", verbose=1)).status == 400


async def test_the_answer_waits_for_no_tick(client: Client) -> None:
    job = await client.enqueue(queue="q")
    with client.site.busy():
        assert await codes(client, job["id"]) == ["no_worker"]


async def test_a_cancelled_job_says_by_whom_and_why(client: Client) -> None:
    job = (await client.enqueue(queue="q"))["id"]
    await client.send("POST", f"/jobs/cancel?id={job}&reason=wrong+list")
    (reason,) = await why(client, job)
    assert (reason["code"], reason["text"]) == ("finished", "it was cancelled: wrong list")
    job = await client.make("cancelled")
    assert "it waits for nothing" in (await why(client, job))[0]["text"]


def test_the_one_who_has_cancelled_a_job_is_named() -> None:
    job = JobRecord(1, "q", "t", 1, Status.CANCELLED, 0, 0, None)
    for canceller, text in (
        (Canceller("mia", "wrong list"), "it was cancelled by mia: wrong list"),
        (Canceller("mia"), "it was cancelled by mia"),
    ):
        waiting = WaitingJob(job, canceller=canceller)
        facts = WaitFacts(0, waiting)
        assert [each.text for each in wait_reasons(facts)] == [text]


async def test_a_job_of_a_queue_that_ages_says_what_comes_first_and_how_far_it_has_come(
    client: Client,
) -> None:
    settings = {"priority_aging_ms": 1_000}
    assert (await client.call("PUT", "/queues/q/settings", settings)).status == 200
    old = (await client.enqueue(queue="q", priority=100))["id"]
    await client.enqueue(queue="q", priority=90)
    client.site.clock.advance(30_000)
    new = (await client.enqueue(queue="q", priority=80))["id"]

    (*_, ahead) = await why(client, new)
    assert (ahead["code"], ahead["count"]) == ("ahead", 2)
    assert ahead["text"].endswith(": by waiting it has come from priority 80 to 80")
    (*_, ahead) = await why(client, old)
    assert ahead["count"] == 1
    assert ahead["text"].endswith(": by waiting it has come from priority 100 to 70")
