"""Which budgets a key may make."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .client import Client, Doc, Wire, new_job
from .keyed import client_of, write_keys
from .site import Site

OTHER = "mail"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path / "data", {"keys": write_keys(tmp_path / "keys")})
    await site.start()
    yield site
    await site.stop()


@pytest.fixture
async def root(site: Site, wire: Wire) -> AsyncIterator[Client]:
    async with client_of(site, wire, "root") as client:
        yield client


@pytest.fixture
async def shop(site: Site, wire: Wire) -> AsyncIterator[Client]:
    async with client_of(site, wire, "shop") as client:
        yield client


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
