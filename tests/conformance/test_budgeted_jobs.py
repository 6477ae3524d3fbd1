"""The budgets in job objects, and filters by budget."""

from .client import Client, Doc, new_job
from .test_budgets import IN_FLIGHT, a_second, budget, put


async def test_a_job_shows_its_budgets(client: Client) -> None:
    await put(client, "b", 3)
    made = await client.enqueue(budgets=[{"key": "b"}], retry_limit=1)
    shown = [{"key": "b", "cost": 1}]
    assert made["budgets"] == shown
    assert (await client.job(made["id"]))["budgets"] == shown
    changed = await client.change(made["id"], retry_limit=None, priority=3)
    assert changed["budgets"] == shown
    taken = await (await client.take()).job()
    assert taken["budgets"] == shown
    assert "budgets" not in await client.enqueue(budgets=[])


async def test_a_budget_comes_with_the_first_job_that_needs_it(client: Client) -> None:
    policy = {"allocation": 2, "strategy": a_second(3)}
    with_policy = [{"key": "b", "cost": 3, "create_with": policy}]
    reply = await client.post(
        "/jobs/bulk",
        {"jobs": [new_job(budgets=with_policy), new_job(budgets=[{"key": "b", "cost": 2}])]},
    )
    assert reply.status == 201
    found = await budget(client, "b")
    assert (found["allocation"], found["strategy"]) == (2, a_second(3))
    other = {"allocation": 9, "strategy": IN_FLIGHT}
    await client.enqueue(budgets=[{"key": "b", "create_with": other}])
    assert (await budget(client, "b"))["allocation"] == 2


IMPOSSIBLE: list[tuple[object, int, str | None]] = [
    ([{"key": "none"}], 422, None),
    ([{"key": "b", "cost": 4}], 422, None),
    ([{"key": "b", "cost": 0}], 422, "budget 'b' cost must be at least 1"),
    ([{"key": "b"}, {"key": "b"}], 422, "budget 'b' named more than once"),
    ([{"key": "a,b"}], 400, "budget key must not contain ','"),
    ([{"cost": 1}], 400, None),
    ("b", 400, None),
]


async def test_a_job_that_no_budget_could_pay_is_refused(client: Client) -> None:
    await put(client, "b", 3)
    for budgets, status, message in IMPOSSIBLE:
        reply = await client.post("/jobs", new_job(budgets=budgets))
        assert (budgets, reply.status) == (budgets, status)
        assert message in (None, reply.error)
        bulk = await client.post("/jobs/bulk", {"jobs": [new_job(), new_job(budgets=budgets)]})
        assert (budgets, bulk.status) == (budgets, status)
        if message is not None or status == 422:
            assert bulk.error == f"jobs[1]: {reply.error}"
    assert await client.count() == 0


async def test_jobs_are_found_by_their_budgets(client: Client) -> None:
    await put(client, "a", 1)
    await put(client, "b", 1)
    await client.enqueue()
    first = await client.enqueue(budgets=[{"key": "a"}])
    second = await client.enqueue(budgets=[{"key": "b"}, {"key": "a"}])
    third = await client.enqueue(budgets=[{"key": "b"}])
    names = [first["id"], second["id"], third["id"]]
    assert [job["id"] for job in await client.jobs(**{"budgets.key": "a"})] == names[:2]
    assert [job["id"] for job in await client.jobs(budgets_key="b,c")] == names[1:]
    assert await client.count(**{"budgets.key": "a,b"}) == 3
    page = (await client.get("/jobs", **{"budgets.key": "b,a", "limit": 1})).doc["pages"]
    assert page["next"] == f"/jobs?from={names[0]}&order=asc&limit=1&budgets.key=a,b"
    reply = await client.patch("/jobs", {"priority": 1}, **{"budgets.key": "b"})
    assert reply.doc == {"patched": 2}
    assert (await client.delete("/jobs", **{"budgets.key": "a"})).doc == {"deleted": 2}
    assert (await client.delete("/jobs", **{"budgets.key": ","})).status == 400


async def test_a_budget_that_comes_with_a_job_has_to_pay_those_behind_it(client: Client) -> None:
    def job(cost: int, *, allocation: int | None) -> Doc:
        budget: Doc = {"key": "b", "cost": cost}
        if allocation is not None:
            budget["create_with"] = {"allocation": allocation, "strategy": IN_FLIGHT}
        return new_job(budgets=[budget])

    for second in (job(3, allocation=None), job(3, allocation=5)):
        reply = await client.post("/jobs/bulk", {"jobs": [job(1, allocation=2), second]})
        message = "jobs[1]: budget 'b' cannot pay a cost of 3: it never has more than 2"
        assert (reply.status, reply.error) == (422, message)
    assert (await client.get("/budgets")).doc == {"budgets": []}
    reply = await client.post("/jobs/bulk", {"jobs": [job(1, allocation=3), second]})
    assert reply.status == 201
    assert (await budget(client, "b"))["allocation"] == 3
