"""Cron entries whose jobs draw from budgets: when these are created, and what keeps them."""

from .client import Client, Doc
from .crons import SECOND_MS, entry, entry_of, put, until_moved
from .test_budgets import IN_FLIGHT
from .test_budgets import put as put_budget

POLICY: Doc = {"allocation": 2, "strategy": IN_FLIGHT}


def drawing(name: str, key: str, cost: int = 1, *, create: bool = True) -> Doc:
    """The body of an entry whose job draws from a budget, every second."""
    budget = {"key": key, "cost": cost} | ({"create_with": POLICY} if create else {})
    return entry(name, job={"budgets": [budget]})


async def keys(client: Client) -> list[str]:
    return [budget["key"] for budget in (await client.get("/budgets")).doc["budgets"]]


async def test_a_budget_is_created_with_the_entry_and_not_when_it_fires(client: Client) -> None:
    group = await put(client, "g", drawing("e", "a", 2), drawing("f", "b") | {"paused": True})
    assert group["entries"][0]["job"]["budgets"] == [{"key": "a", "cost": 2}]
    assert await keys(client) == ["a", "b"]
    assert (await client.post("/crons/g/entries", drawing("h", "c"))).status == 201
    assert (await client.call("PUT", "/crons/g/entries/i", drawing("i", "d"))).status == 200
    # One that is there stays as it is.
    await put_budget(client, "a", 7)
    assert (await client.call("PUT", "/crons/g/entries/i", drawing("i", "a"))).status == 200
    assert (await client.get("/budgets/a")).doc["allocation"] == 7
    assert await keys(client) == ["a", "b", "c", "d"]
    assert await client.count() == 0


async def test_a_job_that_fires_draws_what_its_template_says(client: Client) -> None:
    shown = (await put(client, "g", drawing("e", "a", 2)))["entries"][0]
    client.site.clock.advance(SECOND_MS)
    shown = await until_moved(client, "g", "e", shown)
    client.site.clock.advance(SECOND_MS)
    await until_moved(client, "g", "e", shown)
    stream = await client.take(prefetch=5)
    assert (await stream.job())["budgets"] == [{"key": "a", "cost": 2}]
    budget = (await client.get("/budgets/a")).doc
    assert (budget["available"], budget["waiting"], budget["unfinished"]) == (0, 1, 2)


async def test_a_template_that_no_budget_could_pay_is_refused_with_its_group(
    client: Client,
) -> None:
    await put_budget(client, "small", 1)
    fine = drawing("fine", "new")
    for wrong in (
        drawing("e", "none", create=False),
        drawing("e", "small", 2),
        drawing("e", "own", 3),
    ):
        reply = await client.call("PUT", "/crons/g", {"entries": [fine, wrong]})
        assert (reply.status, reply.error[:20]) == (422, "entries[1]: budget '")
        for method, target in (("POST", "/crons/g/entries"), ("PUT", "/crons/g/entries/e")):
            reply = await client.call(method, target, wrong)
            assert (reply.status, reply.error[:8]) == (422, "budget '")
    assert (await client.get("/crons")).doc == {"crons": []}
    assert await keys(client) == ["small"]


async def test_templates_keep_a_budget(client: Client) -> None:
    await put(client, "g", drawing("e", "a") | {"paused": True}, drawing("f", "a"))
    reply = await client.delete("/budgets/a")
    message = (
        "budget 'a' is referenced by 2 cron templates. Delete or change them before deleting it."
    )
    assert (reply.status, reply.error) == (409, message)
    assert (await client.call("PUT", "/crons/g/entries/f", entry("f"))).status == 200
    reply = await client.delete("/budgets/a")
    assert (reply.status, reply.error) == (
        409,
        message.replace("2 cron templates", "1 cron template"),
    )
    assert (await client.delete("/crons/g/entries/e")).status == 204
    assert (await client.delete("/budgets/a")).status == 204


async def test_an_entry_waits_for_a_budget_that_can_pay_it_and_can_be_paused(
    client: Client,
) -> None:
    before = (await put(client, "g", drawing("e", "a", 2)))["entries"][0]
    await put_budget(client, "a", 1)
    client.site.clock.advance(SECOND_MS)
    before = await until_moved(client, "g", "e", before)
    assert "last_enqueue_at" not in before
    for paused in (True, False):
        reply = await client.patch("/crons/g/entries/e", {"paused": paused})
        assert (reply.status, reply.doc["paused"]) == (200, paused)
    assert (await client.patch("/crons/g", {"timezone": "Asia/Tokyo"})).status == 200
    assert (await client.patch("/crons/g", {"paused": True})).status == 200
    assert (await client.patch("/crons/g", {"paused": False})).status == 200
    before = await entry_of(client, "g", "e")
    await put_budget(client, "a", 2)
    client.site.clock.advance(SECOND_MS)
    after = await until_moved(client, "g", "e", before)
    assert after["last_enqueue_at"] == client.site.now
    assert await client.count() == 1
