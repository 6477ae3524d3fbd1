"""Which budgets a key may make, and how many."""

from collections.abc import AsyncIterator

import pytest

from .client import Client, Doc, Wire, new_job
from .keyed import client_of, keys_in
from .site import Site

OTHER = "mail"


pytestmark = pytest.mark.settings(keys=keys_in, max_budgets=32)


async def test_a_key_makes_budgets_under_its_prefix_only(root: Client, shop: Client) -> None:
    policy = {"allocation": 1, "strategy": {"type": "while_in_flight"}}

    def drawing(key: str) -> Doc:
        return new_job(queue="shop-a", budgets=[{"key": key, "create_with": policy}])

    def entry(key: str) -> Doc:
        return {"name": "e", "expression": "0 0 1 1 *", "job": drawing(key)}

    job = (await shop.enqueue(queue="shop-a"))["id"]
    for key, right in ((OTHER, False), ("shop-budget", True)):
        for method, path, doc in (
            ("POST", "/jobs", drawing(key)),
            ("POST", "/jobs/bulk", {"jobs": [new_job(queue="shop-a"), drawing(key)]}),
            ("PUT", "/crons/g", {"entries": [entry(key)]}),
            ("PUT", "/crons/g/entries/e", entry(key)),
            ("PUT", f"/jobs/{job}/budgets", {"budgets": [{"key": key, "create_with": policy}]}),
            ("PUT", f"/jobs/{job}/budgets/{key}", {"create_with": policy}),
            ("PUT", f"/jobs/budgets/{key}?queue=shop-a", {"create_with": policy}),
        ):
            reply = await shop.call(method, path, doc)
            refused = reply.headers.get("zq-error") == "budget_out_of_reach"
            assert (reply.status < 300, refused) == (right, not right), (method, path)
    assert [b["key"] for b in (await root.get("/budgets")).doc["budgets"]] == ["shop-budget"]


POLICY = {"allocation": 1, "strategy": {"type": "while_in_flight"}}
USUAL = 32 // 8


def bringing(*keys: str) -> Doc:
    return new_job(queue="shop-a", budgets=[{"key": key, "create_with": POLICY} for key in keys])


async def made_by(root: Client) -> list[str]:
    return [b["key"] for b in (await root.get("/budgets")).doc["budgets"]]


@pytest.fixture
async def mall(site: Site, wire: Wire) -> AsyncIterator[Client]:
    """A key that may make two budgets."""
    async with client_of(site, wire, "mall") as client:
        yield client


@pytest.fixture
async def seller(site: Site, wire: Wire) -> AsyncIterator[Client]:
    """A key for all queues, which only stores jobs."""
    async with client_of(site, wire, "only-enqueue") as client:
        yield client


async def test_a_key_makes_budgets_up_to_its_quota_by_every_route(
    root: Client, mall: Client
) -> None:
    job = (await mall.enqueue(queue="shop-a"))["id"]
    assert (await mall.call("POST", "/jobs", bringing("shop-1", "shop-2"))).status == 201

    def entry(key: str) -> Doc:
        return {"name": "e", "expression": "0 0 1 1 *", "job": bringing(key)}

    draw = {"create_with": POLICY}
    for method, path, doc in (
        ("POST", "/jobs", bringing("shop-3")),
        ("POST", "/jobs/bulk", {"jobs": [new_job(queue="shop-a"), bringing("shop-3")]}),
        ("PUT", "/crons/g", {"entries": [entry("shop-3")]}),
        ("PUT", "/crons/g/entries/e", entry("shop-3")),
        ("PUT", f"/jobs/{job}/budgets", {"budgets": [{"key": "shop-3", **draw}]}),
        ("PUT", f"/jobs/{job}/budgets/shop-3", draw),
        ("PUT", "/jobs/budgets/shop-3?queue=shop-a", draw),
    ):
        reply = await mall.call(method, path, doc)
        assert (reply.status, reply.headers.get("zq-error")) == (422, "budget_quota"), path
        assert "'mall' has made 2 budgets, and may have 2" in reply.error
    assert await made_by(root) == ["shop-1", "shop-2"]
    # Those that exist cost nothing more, whoever has made them.
    assert (await mall.call("POST", "/jobs", bringing("shop-1"))).status == 201
    assert (await root.call("PUT", "/budgets/shop-4", POLICY)).status == 200
    assert (await mall.call("POST", "/jobs", bringing("shop-4"))).status == 201


async def test_the_usual_share_of_one_key_leaves_room_for_others(
    root: Client, shop: Client, mall: Client, seller: Client
) -> None:
    """One key alone could fill all budgets, so that nobody else could make one."""
    for client, name, most in ((shop, "s", USUAL), (seller, "o", USUAL), (mall, "m", 2)):
        made = [
            (await client.call("POST", "/jobs", bringing(f"shop-{name}{n}"))).status
            for n in range(USUAL + 2)
        ]
        assert made == [201] * most + [422] * (USUAL + 2 - most)
    made = [(await root.call("PUT", f"/budgets/r{n}", POLICY)).status for n in range(12)]
    assert made == [200] * 12
    assert (await root.call("POST", "/jobs", bringing("by-root"))).status == 201


async def test_what_a_key_has_made_is_known_after_a_restart(
    site: Site, root: Client, mall: Client
) -> None:
    assert (await mall.call("POST", "/jobs", bringing("shop-1", "shop-2"))).status == 201
    await site.restart()
    reply = await mall.call("POST", "/jobs", bringing("shop-3"))
    assert (reply.status, reply.headers["zq-error"]) == (422, "budget_quota")
    # A budget that is gone makes room, and only one.
    assert (await root.call("PATCH", "/jobs", {"priority": 1})).status == 200
    assert (await root.send("DELETE", "/jobs")).status == 200
    assert (await root.send("DELETE", "/budgets/shop-1")).status == 204
    assert (await mall.call("POST", "/jobs", bringing("shop-3"))).status == 201
    assert (await mall.call("POST", "/jobs", bringing("shop-4"))).status == 422


async def test_a_refused_request_counts_nothing(root: Client, mall: Client) -> None:
    bad = new_job(queue="shop-a", budgets=[{"key": "shop-none", "cost": 1}])
    for _ in range(3):
        refused = await mall.call("POST", "/jobs/bulk", {"jobs": [bringing("shop-1"), bad]})
        assert refused.status == 422
    assert await made_by(root) == []
    assert (await mall.call("POST", "/jobs", bringing("shop-1", "shop-2"))).status == 201


async def test_keys_tell_their_quotas(root: Client) -> None:
    keys = {key["name"]: key["budgets"] for key in (await root.get("/keys")).doc["keys"]}
    assert (keys["mall"], keys["shop"]) == (2, None)
