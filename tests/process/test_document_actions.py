"""The page about changes of many jobs, as printed; and a sweep whose server is killed."""

import asyncio
from contextlib import suppress
from pathlib import Path

import httpx
from conformance.client import Client
from documents import commands

from .server import running
from .test_first_job import Shell

(LOOK,) = commands("preview")
(CANCEL,) = commands("bound change")
(AUDIT,) = commands("audit")
(SEARCH,) = commands("search")
ENDED, UNDO = commands("undo")
MANY = 20_000


async def test_the_look_ahead_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await client.enqueue_many(3, queue="mail")
        shell = Shell(server)
        seen = shell.document(LOOK)
        assert (seen["count"], seen["exact"]) == (3, True)
        late = await client.enqueue(queue="mail")
        assert shell.document(CANCEL, seen["upto"]) == {"cancelled": 3}
        assert (await client.job(late["id"]))["status"] == "ready"
        (action,) = shell.document(AUDIT)["actions"]
        (sweep,) = shell.document(ENDED)["sweeps"]
        assert (sweep["changed"], sweep["counted"]) == (3, 3)
        by_hand = await client.make("cancelled", queue="mail")
        assert shell.document(UNDO) == {"undone": 3, "kept": {}, "gone": 0}
        assert (await client.job(by_hand))["status"] == "cancelled"
        assert (sweep["id"], shell.document(ENDED)["sweeps"][0]["reason"]) == ("1", "wrong queue")
        assert (action["query"].partition("&")[0], action["answer"]) == (
            "queue=mail", {"cancelled": 3}
        )  # fmt: skip


async def test_the_search_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await client.enqueue_many(2, queue="mail")
        job = await client.in_flight(queue="mail-2", payload={"why": "a Wrong address"})
        assert Shell(server).document(SEARCH)["jobs"] == []
        await client.change(job["id"], queue="mail")
        (found,) = Shell(server).document(SEARCH)["jobs"]
        assert found["id"] == job["id"]


async def _fill(client: Client) -> None:
    for _ in range(MANY // 1000):
        await client.enqueue_many(1000, queue="mail")


async def test_a_sweep_whose_server_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await _fill(client)
        seen = (await client.get("/sweeps/preview", verb="cancel", queue="mail")).doc
        bound = f"/jobs/cancel?queue=mail&upto={seen['upto']}"
        late = await client.enqueue(queue="mail")
        sent = asyncio.create_task(client.send("POST", bound))
        changed = 0
        while not changed:
            changed = sum(s["changed"] for s in (await client.get("/sweeps")).doc["sweeps"])
        await server.kill()
        with suppress(httpx.HTTPError):
            await sent
    async with running(tmp_path) as server, server.client() as client:
        cancelled = await client.count(queue="mail", status="cancelled")
        assert changed <= cancelled < MANY
        assert cancelled % 1000 == 0
        (killed,) = (await client.get("/sweeps/ended")).doc["sweeps"]
        assert (killed["state"], killed["changed"]) == ("stopped", cancelled)
        assert (await client.send("POST", bound)).doc == {"cancelled": MANY - cancelled}
        assert (await client.job(late["id"]))["status"] == "ready"
        # What the killed one has cancelled comes back, and what the next one has does not.
        undone = (await client.send("POST", f"/sweeps/{killed['id']}/undo")).doc
        assert undone == {"undone": cancelled, "kept": {}, "gone": 0}
        assert await client.count(queue="mail", status="cancelled") == MANY - cancelled
