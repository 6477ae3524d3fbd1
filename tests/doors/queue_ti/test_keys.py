"""Keys hold for messages as they hold for jobs."""

from pathlib import Path
from typing import Any

import pytest
from conformance.client import Wire
from conformance.keyed import client_of, write_keys
from conformance.site import Site

from .messages import Messages


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {"keys": write_keys(tmp_path / "keys")}


async def test_a_key_needs_the_scope_of_what_it_does(site: Site, wire: Wire) -> None:
    async with client_of(site, wire, "only-enqueue") as client:
        api = Messages(client)
        await api.enqueue("t")
        assert (await api.post("/messages/dequeue", {"topic": "t"})).status == 403
        assert (await api.get("/messages")).status == 403
        assert (await api.send("POST", "/admin/delete-reaper/run")).status == 403
    async with client_of(site, wire, "nobody") as client:
        assert (await client.get("/healthz")).status == 200, "probes have no keys"
        reply = await Messages(client).get("/stats")
        assert reply.status == 401 and reply.headers["www-authenticate"] and reply.error


async def test_a_key_sees_the_topics_of_its_prefixes_only(site: Site, wire: Wire) -> None:
    async with client_of(site, wire, "root") as root, client_of(site, wire, "shop") as shop:
        every, some = Messages(root), Messages(shop)
        hidden = await every.enqueue("other", key="k")
        await every.configure("other", max_depth=9)
        await some.enqueue("shop-1")
        assert [m["topic"] for m in (await some.get("/messages")).doc["items"]] == ["shop-1"]
        assert [row["topic"] for row in (await some.get("/stats")).doc["topics"]] == ["shop-1"]
        assert (await some.get("/topic-configs")).doc == {"items": []}
        for target, body in (
            ("/messages", {"topic": "other", "payload": "x"}),
            ("/messages/dequeue", {"topic": "other"}),
            ("/topics/other/purge", {}),
        ):
            assert (await some.post(target, body)).status == 403
        assert (await some.send("DELETE", "/topics/other/messages/by-key/k")).status == 403
        assert (await some.send("POST", "/admin/expiry-reaper/run")).status == 403
        assert await some.ack(hidden) == 404
        assert (await every.one("other"))["status"] == "pending"
