"""The draws of waiting jobs, changed one by one and by a filter."""

from .client import Client, Doc
from .test_budgets import IN_FLIGHT, budget, put


def drawn(job: Doc) -> list[tuple[str, int]]:
    return [(draw["key"], draw["cost"]) for draw in job.get("budgets", [])]


async def test_one_job_is_bound_changed_and_unbound(client: Client) -> None:
    await put(client, "a", 5)
    await put(client, "b", 5)
    path = f"/jobs/{(await client.enqueue())['id']}/budgets"

    async def sent(method: str, target: str, doc: Doc) -> list[tuple[str, int]]:
        reply = await client.call(method, f"{path}{target}", doc)
        assert reply.status == 200, reply.doc
        return drawn(reply.doc)

    assert await sent("POST", "/a", {"cost": 2}) == [("a", 2)]
    again = await client.post(f"{path}/a", {})
    assert (again.status, again.headers["zq-error"]) == (409, "budget_bound")
    assert await sent("PUT", "/b", {}) == [("a", 2), ("b", 1)]
    assert await sent("PUT", "/a", {"cost": 3}) == [("a", 3), ("b", 1)]
    assert await sent("PATCH", "/b", {"cost": 4}) == [("a", 3), ("b", 4)]
    made = {"allocation": 1, "strategy": IN_FLIGHT}
    new = {"key": "c", "create_with": made}
    assert await sent("PUT", "", {"budgets": [{"key": "b"}, new]}) == [("b", 1), ("c", 1)]
    assert (await budget(client, "a"))["unfinished"] == 0
    reply = await client.delete(f"{path}/b")
    assert drawn(reply.doc) == [("c", 1)]
    assert (await client.patch(f"{path}/b", {"cost": 1})).status == 404
    assert (await client.delete(path)).doc.get("budgets") is None
    for doc, status in (({"cost": 6}, 422), ({"cost": 0}, 422), ({"cost": "x"}, 400)):
        assert (await client.post(f"{path}/a", doc)).status == status
    assert (await client.post(f"{path}/none", {})).status == 422
    job = await (await client.take()).job()
    reply = await client.post(f"{path}/a", {})
    message = f"job '{job['id']}' is InFlight — only queued jobs may have their budgets changed"
    assert (reply.status, reply.error) == (422, message)


async def test_a_job_never_draws_from_more_than_64_budgets(client: Client) -> None:
    made = {"create_with": {"allocation": 2, "strategy": IN_FLIGHT}}
    most = [{"key": f"k{n}", **made} for n in range(64)]
    full = await client.enqueue(budgets=most)
    for method, target in (("PUT", ""), ("POST", "/x"), ("PUT", "/x")):
        body = made if target else {"budgets": [*most, {"key": "x", **made}]}
        reply = await client.call(method, f"/jobs/{full['id']}/budgets{target}", body)
        assert reply.status == (422 if target else 400)
        assert reply.error == "a job may draw from at most 64 budgets"
    assert reply.headers["zq-error"] == "too_many_budgets"
    other = await client.enqueue(budgets=most[1:])
    reply = await client.call("PUT", "/jobs/budgets/x", made)
    assert reply.doc == {"changed": 1, "blocked": [], "kept": {"too_many_budgets": 1}}
    assert len(drawn(await client.job(full["id"]))) == len(drawn(await client.job(other["id"])))
    reply = await client.call("PUT", f"/jobs/{full['id']}/budgets/k0", {"cost": 2})
    assert (reply.status, drawn(reply.doc)[0]) == (200, ("k0", 2))


async def test_many_jobs_are_bound_and_those_in_flight_are_named(client: Client) -> None:
    await put(client, "b", 2)
    runs, *waiting = await client.enqueue_many(4)
    (other,) = await client.enqueue_many(1, queue="other")
    stream = await client.take()
    assert (await stream.job())["id"] == runs
    reply = await client.post("/jobs/budgets/b?queue=default", {"cost": 2})
    assert reply.doc == {"changed": 3, "blocked": [runs]}
    assert drawn(await client.job(other)) == []
    reply = await client.post("/jobs/budgets/b", {})
    assert reply.doc["changed"] == 1
    assert drawn(await client.job(waiting[0])) == [("b", 2)]
    reply = await client.patch("/jobs/budgets/b", {"cost": 1})
    assert reply.doc == {"changed": 3, "blocked": []}
    await client.succeed(runs)
    more = await client.take(prefetch=9)
    held = [job["id"] for job in (await stream.job(), await more.job())]
    await client.heartbeat(more)
    assert sorted(held) == waiting[:2]
    reply = await client.delete("/jobs/budgets/b", queue="default")
    assert reply.doc == {"changed": 1, "blocked": sorted(held)}
    # It draws from nothing any more.
    assert (await more.job())["id"] == waiting[2]
    assert (await client.delete("/jobs/budgets")).doc["changed"] == 1
    assert (await client.post("/jobs/budgets/none", {})).status == 422
    assert (await client.call("PUT", "/jobs/budgets/b", {"cost": 3})).status == 422
