"""Why the jobs of a queue wait: what holds them now, and what would change that."""

import pytest

from .client import Client, Doc
from .test_budgets import IN_FLIGHT, a_second
from .test_budgets import put as put_budget
from .test_settings import put
from .test_way_back import device_of, send


async def why(client: Client, queue: str = "q") -> Doc:
    reply = await client.get(f"/queues/{queue}/why")
    assert reply.status == 200, reply.doc
    found: Doc = reply.doc
    return found


async def kinds(client: Client, queue: str = "q") -> list[str]:
    return [gate["kind"] for gate in (await why(client, queue))["gates"]]


async def texts(client: Client) -> list[str]:
    return [line["text"] for line in (await why(client))["lines"]]


async def test_a_queue_without_jobs_and_one_that_nothing_holds_say_so(client: Client) -> None:
    empty = {"gates": [], "ahead": 0, "slots_free": 0, "workers": 0}
    assert await why(client) == empty | {"lines": [{"text": "No job waits."}]}
    await put(client, "q", paused=True)
    assert await kinds(client) == []


async def test_a_queue_that_nobody_takes_from_says_so(client: Client) -> None:
    await client.enqueue_many(3, queue="q")
    found = await why(client)
    assert (found["ahead"], found["workers"]) == (3, 0)
    assert found["gates"] == [{"kind": "no_worker", "text": "Nobody takes its jobs"}]
    start = "Nobody takes its jobs: start a worker for it."
    assert found["lines"] == [{"text": start, "remedy": "no_worker"}]


async def test_a_queue_whose_jobs_leave_says_so_instead(client: Client) -> None:
    await device_of(client)
    await client.take(prefetch=9)
    await send(client, 1, 2)
    found = await why(client, "to%2Fd1%2Fcommands")
    assert [gate["kind"] for gate in found["gates"]] == ["leaves"]
    (line,) = found["lines"]
    assert "zq devices list" in line["text"] and line["remedy"] == "leaves"
    assert found["ahead"] == 2


async def test_a_pause_has_its_author_its_end_and_its_reason(client: Client) -> None:
    until = client.site.now + 60_000
    await put(client, "q", paused=True, paused_until=until, pause_reason="wrong list")
    await client.take(queue="q")
    await client.enqueue(queue="q")
    (gate,) = (await why(client))["gates"]
    assert (gate["kind"], gate["until"]) == ("paused", until)
    assert "(wrong list)" in gate["text"]
    assert (await texts(client))[0].endswith(": resume it to have its jobs delivered.")


async def test_limits_say_whether_workers_have_free_slots(client: Client) -> None:
    await put(client, "q", concurrency=1)
    await client.take(queue="q", prefetch=4, more={"concurrency": 4})
    first, _ = await client.enqueue_many(2, queue="q")
    await client.until(first, status="in_flight")
    found = await why(client)
    assert [gate["kind"] for gate in found["gates"]] == ["concurrency"]
    assert (found["ahead"], found["slots_free"], found["workers"]) == (1, 3, 1)
    assert await texts(client) == [
        "It has 1 of at most 1 jobs in flight. Its workers have 3 free slots: a higher limit would"
        " use them."
    ]
    await put(client, "q", rate=1)
    await client.enqueue_many(2, queue="q")
    slow = await why(client)
    assert [line.get("remedy") for line in slow["lines"]] == ["rate"]


async def test_busy_workers_say_in_how_many_slots(client: Client) -> None:
    await client.take(queue="q", prefetch=2, more={"concurrency": 2})
    ids = await client.enqueue_many(3, queue="q")
    for id in ids[:2]:
        await client.until(id, status="in_flight")
    assert await kinds(client) == ["workers_busy"]
    assert await texts(client) == [
        "Its worker is busy in 2 of 2 slots: more workers, or more slots of a worker, would take"
        " more."
    ]


@pytest.mark.parametrize("cost", [1, 2])
async def test_a_budget_says_what_it_has_what_a_job_takes_and_when_it_can_pay(
    client: Client, cost: int
) -> None:
    await put_budget(client, "crm", 2, IN_FLIGHT)
    await put_budget(client, "pace", 1, a_second(1))
    await client.take(queue="q", prefetch=9)
    draws = [{"key": "crm", "cost": cost}, {"key": "pace"}]
    first, *_ = await client.enqueue_many(3, queue="q", budgets=draws)
    await client.until(first, status="in_flight")
    found = await why(client)
    assert {gate["kind"] for gate in found["gates"]} == {"budget"}
    text = 'budget "crm" has 0 of 2 tokens free, and a job takes 2: a job has to end first'
    said = [gate["text"] for gate in found["gates"]]
    assert (f"2 jobs wait: {text}" in said) == (cost == 2)
    (pace,) = [gate for gate in found["gates"] if '"pace" has 0 of 1 token free' in gate["text"]]
    assert pace["until"] == client.site.now + 1_000
    await client.enqueue(queue="other", budgets=[{"key": "crm", "cost": 1}])
    assert "budget" not in await kinds(client, "unrelated")


async def test_jobs_behind_the_first_of_their_groups_say_so(client: Client) -> None:
    await client.take(queue="q", prefetch=9)
    first, *_ = await client.enqueue_many(3, queue="q", group="g")
    await client.until(first, status="in_flight")
    assert await texts(client) == ["2 jobs wait for the job of their group that comes first."]


@pytest.mark.settings(global_in_flight_limit=1)
async def test_the_limit_of_the_server_is_named(client: Client) -> None:
    await client.take(queue="q", prefetch=9, more={"concurrency": 9})
    first, _ = await client.enqueue_many(2, queue="q")
    await client.until(first, status="in_flight")
    found = await why(client)
    assert [gate["kind"] for gate in found["gates"]] == ["server_limit"]
    assert "remedy" not in found["lines"][0]


async def test_the_answer_waits_for_no_tick_and_reads_nothing_else(client: Client) -> None:
    await client.enqueue(queue="q")
    with client.site.busy():
        assert await kinds(client) == ["no_worker"]
    assert (await client.get("/queues/q/why", verbose=1)).status == 400
