"""Budgets themselves: their routes, their policies, and when one cannot be deleted."""

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from .claims import claim
from .client import Client, Doc

IN_FLIGHT = {"type": "while_in_flight"}


def a_second(burst: int | None = None) -> Doc:
    return {"type": "time_based", "duration_ms": 1000} | ({"burst": burst} if burst else {})


async def put(client: Client, key: str, allocation: int, strategy: Doc = IN_FLIGHT) -> Doc:
    """Set a budget; it as it is then."""
    reply = await client.call(
        "PUT", f"/budgets/{key}", {"allocation": allocation, "strategy": strategy}
    )
    assert reply.status == 200, reply.doc
    budget: Doc = reply.doc
    return budget


async def budget(client: Client, key: str) -> Doc:
    reply = await client.get(f"/budgets/{key}")
    assert reply.status == 200, reply.doc
    found: Doc = reply.doc
    return found


async def test_a_budget_is_created_read_replaced_changed_and_deleted(client: Client) -> None:
    now = client.site.now
    sent = {"allocation": 3, "strategy": a_second(5)}
    made = await client.post("/budgets/b", sent)
    times = {"created_at": now, "updated_at": now}
    numbers = {"available": 5, "waiting": 0, "unfinished": 0}
    assert (made.status, made.doc) == (201, {"key": "b"} | sent | times | numbers)
    assert await budget(client, "b") == made.doc
    again = await client.post("/budgets/b", sent)
    assert (again.status, again.error) == (409, "budget 'b' already exists")
    client.site.clock.advance(7)
    replaced = await put(client, "b", 2)
    assert replaced["strategy"] == IN_FLIGHT
    assert (replaced["created_at"], replaced["updated_at"]) == (now, now + 7)
    await put(client, "a%2Fü", 1)
    listed = await client.get("/budgets")
    assert [each["key"] for each in listed.doc["budgets"]] == ["a/ü", "b"]
    assert (await client.delete("/budgets/b")).status == 204
    for reply in (
        await client.get("/budgets/b"),
        await client.delete("/budgets/b"),
        await client.patch("/budgets/b", {}),
    ):
        assert (reply.status, reply.error) == (404, "budget 'b' not found")


async def test_a_budget_that_cannot_pay_before_the_end_of_time_keeps_its_jobs_alone(
    client: Client,
) -> None:
    far = {"type": "time_based", "duration_ms": 2**53, "burst": 1_000_000}
    await put(client, "far", 1, far)
    for _ in range(2):
        await client.enqueue(queue="far", budgets=[{"key": "far", "cost": 1_000_000}])
    assert len(await claim(client, "far", max=2)) == 1
    # It was one failing transaction after the other, for whoever claimed.
    await client.enqueue()
    assert len(await claim(client)) == 1
    gates = (await client.get("/queues/far/why")).doc["gates"]
    assert "budget" in [gate["kind"] for gate in gates]


async def test_a_patch_of_a_budget_goes_field_by_field(client: Client) -> None:
    await put(client, "b", 3, a_second(5))

    async def patched(**fields: Any) -> tuple[int, Doc]:
        reply = await client.patch("/budgets/b", fields)
        assert reply.status == 200, reply.doc
        return reply.doc["allocation"], reply.doc["strategy"]

    assert await patched() == (3, a_second(5))
    assert await patched(allocation=4) == (4, a_second(5))
    assert await patched(strategy={"burst": None}) == (4, a_second())
    slower = {"type": "time_based", "duration_ms": 60_000}
    assert await patched(strategy={"duration_ms": 60_000}) == (4, slower)
    assert await patched(strategy={"type": "while_in_flight"}) == (4, IN_FLIGHT)
    assert await patched(strategy=a_second(9)) == (4, a_second(9))
    assert await patched(strategy={"type": "while_in_flight"}) == (4, IN_FLIGHT)
    reply = await client.patch("/budgets/b", {"strategy": {"duration_ms": 5}})
    assert reply.status == 422


TIME = {"type": "time_based"}


IMPOSSIBLE: list[tuple[int, Doc, str | None]] = [
    (0, IN_FLIGHT, "budget allocation must be at least 1"),
    (1_000_001, IN_FLIGHT, "budget allocation must not exceed 1000000"),
    (1, TIME | {"duration_ms": 0}, "time_based budget duration_ms must be at least 1"),
    (1, TIME | {"duration_ms": 1, "burst": 0}, "time_based budget burst must be at least 1"),
    (1, IN_FLIGHT | {"burst": 1}, None),
    (1, IN_FLIGHT | {"duration_ms": 1}, None),
    (1, TIME, None),
    (1, {"type": "weekly"}, None),
]


async def test_a_policy_that_cannot_be_is_refused(client: Client) -> None:
    for allocation, strategy, message in IMPOSSIBLE:
        policy = {"allocation": allocation, "strategy": strategy}
        for method in ("POST", "PUT"):
            reply = await client.call(method, "/budgets/b", policy)
            assert (policy, reply.status) == (policy, 422)
            assert message in (None, reply.error)
    assert (await client.get("/budgets")).doc == {"budgets": []}


async def test_bodies_and_keys_of_the_wrong_form_are_refused(client: Client) -> None:
    bodies: list[Any] = [{}, {"allocation": 1}, {"allocation": "1", "strategy": IN_FLIGHT}, []]
    for body in bodies:
        assert (await client.post("/budgets/b", body)).status == 400
    reply = await client.post("/budgets/a%2Cb", {"allocation": 1, "strategy": IN_FLIGHT})
    assert reply.status == 400
    assert (await client.get("/budgets", limit=3)).status == 400


async def test_there_are_only_so_many_budgets(client: Client) -> None:
    await client.site.restart(max_budgets=2)
    await put(client, "a", 1)
    await put(client, "b", 1)
    reply = await client.post("/budgets/c", {"allocation": 1, "strategy": IN_FLIGHT})
    assert reply.status == 422
    assert "--max-budgets" in reply.error
    made = {"key": "c", "create_with": {"allocation": 1, "strategy": IN_FLIGHT}}
    job = {"queue": "q", "type": "t", "payload": 1, "budgets": [made]}
    assert (await client.post("/jobs", job)).status == 422
    await put(client, "b", 2)
    assert await client.count() == 0


async def test_unfinished_jobs_keep_a_budget(client: Client) -> None:
    await put(client, "b", 3)
    waits = await client.enqueue(budgets=[{"key": "b", "cost": 2}])
    reply = await client.delete("/budgets/b")
    message = (
        "budget 'b' is referenced by 1 unfinished job. Delete them or wait for them to finish"
        " before deleting it."
    )
    assert (reply.status, reply.error) == (409, message)
    reply = await client.patch("/budgets/b", {"allocation": 1})
    message = (
        "budget 'b' cannot allocate 1: 1 unfinished job draw up to 2 from it. Raise the"
        " allocation, delete them, or wait for them to drain."
    )
    assert (reply.status, reply.error) == (422, message)
    assert (await budget(client, "b"))["waiting"] == 1
    stream = await client.take()
    await stream.job()
    assert (await client.delete("/budgets/b")).status == 409
    await client.succeed(waits["id"])
    assert (await client.delete("/budgets/b")).status == 204


async def test_a_dead_job_comes_back_only_to_budgets_that_can_pay_it(client: Client) -> None:
    await put(client, "b", 1)
    dead = await client.make("dead", budgets=[{"key": "b"}])
    assert (await client.delete("/budgets/b")).status == 204
    reply = await client.post(f"/jobs/{dead}/retry", {})
    assert reply.status == 422
    kept = {"budget_gone": 1}
    assert (await client.post("/jobs/redrive", {})).doc == {"redriven": 0, "kept": kept}
    await put(client, "b", 1)
    assert (await client.post("/jobs/redrive", {})).doc == {"redriven": 1}
    assert await (await client.take()).jobs(1)


async def test_a_replay_leaves_out_jobs_that_no_budget_can_pay(client: Client) -> None:
    await client.call("PUT", "/queues/q/settings", {"retention": {"completed_ms": 60_000}})
    await put(client, "b", 1)
    drawing = await client.make("completed", queue="q", budgets=[{"key": "b"}])
    plain = await client.make("completed", queue="q")
    assert (await client.delete("/budgets/b")).status == 204
    listener = await client.listen()
    reply = await client.post("/queues/q/replay", {})
    assert (reply.status, reply.doc) == (200, {"replayed": 1, "kept": {"budget_gone": 1}})
    (copy,) = await client.jobs(status="ready")
    assert copy["id"] not in (drawing, plain)
    event = await listener.event()
    assert (event["type"], event["id"]) == ("enqueued", copy["id"])
    await put(client, "b", 1)
    assert (await client.post("/queues/q/replay", {})).doc == {"replayed": 2}
    assert (await client.patch("/queues/q/settings", {"max_depth": 4})).status == 200
    # The queue takes what it has room for.
    assert (await client.post("/queues/q/replay", {})).status == 429
    assert await client.count(queue="q", status="ready") == 4


async def test_reset_forgets_budgets_and_deleting_all_jobs_does_not(client: Client) -> None:
    await put(client, "b", 1)
    await client.enqueue_many(3, budgets=[{"key": "b"}])
    await (await client.take()).job()
    assert (await client.delete("/jobs")).status == 200
    found = await budget(client, "b")
    assert (found["available"], found["waiting"], found["unfinished"]) == (1, 0, 0)
    assert (await client.post("/reset", {})).status == 204
    assert (await client.get("/budgets")).doc == {"budgets": []}


async def test_jobs_leave_room_for_budgets_that_are_made_alone(client: Client) -> None:
    await client.site.restart(max_budgets=8)
    policy = {"allocation": 1, "strategy": {"type": "while_in_flight"}}
    jobs = [
        {
            "queue": "q",
            "type": "t",
            "payload": 1,
            "budgets": [{"key": f"b{n}", "create_with": policy}],
        }
        for n in range(8)
    ]
    assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 422
    assert (await client.post("/jobs/bulk", {"jobs": jobs[:7]})).status == 201
    last = await client.post("/jobs", jobs[7])
    assert last.status == 422 and "PUT /budgets" in last.error
    assert (await client.call("PUT", "/budgets/mine", policy)).status == 200


async def test_a_job_that_used_more_than_it_drew_leaves_the_budget_below_zero(
    client: Client,
) -> None:
    await put(client, "llm", 10, a_second())
    draws = [{"key": "llm", "cost": 4}]
    first, second, third = [(await client.enqueue(budgets=draws))["id"] for _ in range(3)]
    stream = await client.take(prefetch=3)
    assert [(await stream.job())["id"] for _ in range(2)] == [first, second]
    assert (await budget(client, "llm"))["available"] == 2
    used = {"llm": 24, "unknown": 7}
    assert (await client.post(f"/jobs/{first}/success", {"used": used})).status == 204
    assert (await budget(client, "llm"))["available"] == -18
    await client.site.restart()
    assert (await budget(client, "llm"))["available"] == -18
    stream = await client.take(prefetch=3)
    assert (await budget(client, "llm"))["available"] == -18
    client.site.clock.advance(2_199)
    assert (await budget(client, "llm"))["available"] == 3
    client.site.clock.advance(1)
    assert (await stream.job())["id"] == second
    items = [{"id": second, "used": {"llm": 1}}]
    assert (await client.post("/jobs/success", {"items": items})).status == 204
    assert (await budget(client, "llm"))["available"] == 3
    client.site.clock.advance(100)
    assert (await stream.job())["id"] == third


async def test_what_a_job_used_does_not_change_tokens_that_come_back(client: Client) -> None:
    await put(client, "b", 2)
    id = (await client.enqueue(budgets=[{"key": "b"}]))["id"]
    await (await client.take()).job()
    assert (await client.post(f"/jobs/{id}/success", {"used": {"b": 90}})).status == 204
    assert (await budget(client, "b"))["available"] == 2


async def test_a_report_of_what_was_used_is_checked(client: Client) -> None:
    id = (await client.enqueue())["id"]
    for used in ({"b": -1}, {"b": "1"}, {"b": 2**32}, 5, {f"b{n}": 1 for n in range(65)}):
        reply = await client.post(f"/jobs/{id}/success", {"used": used})
        assert (used, reply.status) == (used, 400)


async def test_a_held_budget_pays_nothing_until_its_time(client: Client) -> None:
    await put(client, "llm", 10)
    job = (await client.enqueue(budgets=[{"key": "llm"}]))["id"]
    until = client.site.now + 20_000
    held = await client.post("/budgets/llm/hold", {"retry_after": "20"})
    assert (held.status, held.doc["held_until"], held.doc["available"]) == (200, until, 0)
    shorter = await client.post("/budgets/llm/hold", {"for_ms": 5_000})
    assert shorter.doc["held_until"] == until
    stream = await client.take()
    (reason,) = (await client.get(f"/jobs/{job}/why")).doc["reasons"]
    assert (reason["code"], reason["budget"], reason["until"]) == ("budget", "llm", until)
    assert 'budget "llm" is held until' in reason["text"]
    await client.site.restart()
    assert (await budget(client, "llm"))["held_until"] == until
    stream = await client.take()
    client.site.clock.advance(19_999)
    assert (await client.job(job))["status"] == "ready"
    client.site.clock.advance(1)
    assert (await stream.job())["id"] == job
    assert "held_until" not in await budget(client, "llm")


async def test_a_hold_runs_on_elapsed_time(client: Client) -> None:
    await put(client, "llm", 1)
    job = (await client.enqueue(budgets=[{"key": "llm"}]))["id"]
    await client.post("/budgets/llm/hold", {"for_ms": 20_000})
    stream = await client.take()
    client.site.clock.step(3_600_000)
    client.site.clock.advance(10_000)
    assert (await budget(client, "llm"))["held_until"] == client.site.now + 10_000
    client.site.clock.step(-7_200_000)
    client.site.clock.advance(10_000)
    assert (await stream.job())["id"] == job


async def test_the_end_of_a_hold_lets_jobs_go_at_once(client: Client) -> None:
    await put(client, "llm", 1)
    job = (await client.enqueue(budgets=[{"key": "llm"}]))["id"]
    await client.post("/budgets/llm/hold", {"for_ms": 20_000})
    stream = await client.take()
    reopened = await client.delete("/budgets/llm/hold")
    assert (reopened.status, "held_until" in reopened.doc) == (200, False)
    assert (await stream.job())["id"] == job


async def test_a_hold_until_a_date_of_http(client: Client) -> None:
    await put(client, "llm", 1)
    now = client.site.now // 1000
    dated = format_datetime(datetime.fromtimestamp(now + 30, UTC), usegmt=True)
    held = await client.post("/budgets/llm/hold", {"retry_after": dated})
    assert held.doc["held_until"] == (now + 30) * 1000
    past = format_datetime(datetime.fromtimestamp(now - 30, UTC), usegmt=True)
    await client.delete("/budgets/llm/hold")
    assert "held_until" not in (await client.post("/budgets/llm/hold", {"retry_after": past})).doc


async def test_a_hold_that_cannot_be_meant_is_refused(client: Client) -> None:
    await put(client, "llm", 1)
    for body, status in (
        ({}, 400),
        ({"for_ms": 1, "retry_after": 1}, 400),
        ({"retry_after": "soon"}, 400),
        ({"retry_after": f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"}, 400),
        ({"retry_after": f"Mon, 01 Jan 2020 00:00:00 +{'9' * 20}"}, 400),
        ({"retry_after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 422),
        ({"seconds": 1}, 400),
        ({"for_ms": -1}, 422),
        ({"for_ms": 8 * 24 * 3_600_000}, 422),
    ):
        reply = await client.post("/budgets/llm/hold", body)
        assert (body, reply.status) == (body, status)
    missing = await client.post("/budgets/none/hold", {"for_ms": 1})
    assert (missing.status, missing.error) == (404, "budget 'none' not found")
