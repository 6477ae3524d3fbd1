"""Large payloads in MessagePack: the same as in JSON, and others are served while they are made."""

import asyncio
import json

from zq.engine.turns import Turns
from zq.http.api.packing import ROWS, Packer
from zq.wire.codecs import JSON

from .client import Client

PAYLOADS = [{f"k{n}": [n] for n in range(3_000)}, [0] * 40_000, {"a": {"b": "x" * 50_000}}]


async def test_stored_json_is_packed_in_slices(client: Client) -> None:
    turns = client.site.server.engine.turns
    made = [await client.enqueue(payload=payload, queue="large") for payload in PAYLOADS]
    makes_values = client.wire.name.startswith("msgpack")
    before = turns.waited
    assert [job["payload"] for job in await client.jobs(queue="large")] == PAYLOADS
    assert (turns.waited > before) is makes_values
    before = turns.waited
    assert (await client.job(made[0]["id"]))["payload"] == PAYLOADS[0]
    assert (turns.waited > before) is makes_values
    before = turns.waited
    stream = await client.take(queue="large", prefetch=10)
    assert [(await stream.job())["payload"] for _ in PAYLOADS] == PAYLOADS
    assert (turns.waited > before) is makes_values
    await stream.close()


async def test_a_claim_has_large_payloads(client: Client) -> None:
    turns = client.site.server.engine.turns
    for payload in PAYLOADS:
        await client.enqueue(payload=payload, queue="large")
    before = turns.waited
    wanted = {"max": 10, "lease_ms": 60_000, "holder": "w"}
    reply = await client.post("/queues/large/claim", wanted)
    assert [job["payload"] for job in reply.doc["jobs"]] == PAYLOADS
    assert (turns.waited > before) is client.wire.name.startswith("msgpack")


async def test_statistics_of_many_queues_are_made_in_slices(client: Client) -> None:
    jobs = [{"queue": f"q{n:03}", "type": "t", "payload": n} for n in range(2 * ROWS + 1)]
    assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201
    turns = client.site.server.engine.turns
    before = turns.waited
    reply = await client.get("/stats")
    assert [each["queue"] for each in reply.doc["queues"]] == [job["queue"] for job in jobs]
    assert turns.waited - before >= 2


async def test_the_rows_of_a_long_list_are_let_go_of_in_slices() -> None:
    """To free many at once would hold the event loop."""
    rows = list(range(10 * ROWS))
    making = asyncio.create_task(Packer(Turns()).listed("rows", rows, _long, JSON))
    left = set[int]()
    while not making.done():
        left.add(len(rows))
        await asyncio.sleep(0)
    assert len(left) > 5
    assert not rows
    assert json.loads((await making).body) == {"rows": list(map(_long, range(10 * ROWS)))}


def _long(number: int) -> str:
    return f"{number:0100}"
