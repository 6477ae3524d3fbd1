"""How many settings, fair keys, schemas and schedules a key with prefixes may make."""

import asyncio

import pytest

from zq.model import reach

from .client import Client, Doc, Reply, new_job
from .keyed import keys_in

MOST = 3

SCHEMA = {"type": "record", "name": "A", "fields": []}


pytestmark = pytest.mark.settings(keys=keys_in)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MOST_WITHIN_REACH", MOST)


def entry(queue: str) -> Doc:
    return {"name": "e", "expression": "0 0 1 1 *", "job": new_job(queue=queue)}


async def make(client: Client, kind: str, name: str) -> Reply:
    """Make one thing of a kind for the queue of this name."""
    match kind:
        case "settings":
            return await client.call("PUT", f"/queues/{name}/settings", {"concurrency": 1})
        case "schema":
            return await client.call("PUT", f"/queues/{name}/schema", {"schema": SCHEMA})
        case "fair key":
            return await client.call("PUT", f"/queues/{name}/fair/k", {"weight": 2})
        case "entry":
            return await client.call("PUT", f"/crons/g-{name}/entries/e", entry(name))
        case _:
            return await client.call("PUT", f"/crons/g-{name}", {"entries": [entry(name)]})


async def unmake(client: Client, kind: str, name: str) -> None:
    paths = {
        "settings": f"/queues/{name}/settings",
        "schema": f"/queues/{name}/schema",
        "fair key": f"/queues/{name}/fair/k",
    }
    reply = await client.send("DELETE", paths.get(kind, f"/crons/g-{name}"))
    assert reply.status < 300


@pytest.mark.parametrize("kind", ["settings", "schema", "fair key", "entry", "group"])
async def test_a_key_with_prefixes_makes_so_many_of_a_kind(
    root: Client, shop: Client, kind: str
) -> None:
    for n in range(MOST + 1):
        assert (await make(root, kind, f"mail-{n}")).status < 300
    # At the same time, all but so many are refused.
    replies = await asyncio.gather(*[make(shop, kind, f"shop-{n}") for n in range(2 * MOST)])
    refused = [reply for reply in replies if reply.status == 422]
    assert [reply.headers["zq-error"] for reply in refused] == ["quota_reached"] * MOST
    assert "delete some" in refused[0].error

    # What is there may be changed, others still make theirs, and what is deleted makes room.
    made = next(n for n, reply in enumerate(replies) if reply.status < 300)
    left = next(n for n, reply in enumerate(replies) if reply.status == 422)
    assert (await make(shop, kind, f"shop-{made}")).status < 300
    assert (await make(root, kind, f"shop-{left}")).status < 300
    assert (await make(shop, kind, "shop-more")).status == 422
    for name in (f"shop-{made}", f"shop-{left}"):
        await unmake(shop, kind, name)
    assert (await make(shop, kind, "shop-more")).status < 300


async def test_a_group_of_too_many_entries_is_refused_as_a_whole(shop: Client) -> None:
    entries = [{**entry("shop-a"), "name": f"e{n}"} for n in range(MOST + 1)]
    reply = await shop.call("PUT", "/crons/g", {"entries": entries})
    assert (reply.status, reply.headers["zq-error"]) == (422, "quota_reached")
    assert (await shop.call("PUT", "/crons/g", {"entries": entries[:MOST]})).status < 300
    assert (await shop.call("PUT", "/crons/g", {"entries": entries[1:]})).status < 300
