"""The history of a device at its hub: each record once, with the same content."""

from functools import partial
from pathlib import Path
from typing import Any

from conformance.claims import claim
from conformance.client import Client, Doc

from zq.features.forward.peer import Links

from .edge import Edge, copied, restored, until

DAY_MS = 86_400_000
OF_THE_DATABASE = ("seq", "epoch")
"""What a record has of the database in which it is read."""


def recording(root: Path, **settings: Any) -> Edge:
    return Edge(root, {"history": 7 * DAY_MS, "device": "hub"}, history=7 * DAY_MS, **settings)


async def work(edge: Edge, *payloads: Any) -> None:
    """Have the device do jobs: every third one fails for good, and none has to do with the hub."""
    jobs = [{"queue": "local", "type": "t", "payload": each, "retry_limit": 0} for each in payloads]
    assert (await edge.near.post("/jobs/bulk", {"jobs": jobs})).status == 201
    edge.device.clock.advance(1_000)
    for job in await claim(edge.near, "local", max=len(jobs), holder="w1"):
        edge.device.clock.advance(500)
        lease = {"lease": job["lease"]} if "lease" in job else {}
        if job["payload"] % 3:
            reply = await edge.near.post(f"/jobs/{job['id']}/success", lease)
        else:
            said = {"message": "no paper", "error_type": "Printer"} | lease
            reply = await edge.near.post(f"/jobs/{job['id']}/failure", said)
        assert reply.status < 300, reply.body


async def records(client: Client) -> list[Doc]:
    found = (await client.get("/history", limit=10_000)).doc["records"]
    return [
        {name: value for name, value in each.items() if name not in OF_THE_DATABASE}
        for each in found
        if each["device"] != "hub"
    ]


async def the_hub_has_them(edge: Edge) -> list[Doc]:
    """Wait until the hub has all records of the device, and return them."""
    own = await records(edge.near)

    async def has() -> bool:
        await edge.hurry()
        return len(await records(edge.far)) >= len(own)

    await until(has)
    found = await records(edge.far)
    assert found == own
    return found


async def test_the_hub_has_each_record_as_the_device_has_it(tmp_path: Path) -> None:
    async with recording(tmp_path).running() as edge:
        await edge.lay()
        await work(edge, *range(9))
        found = await the_hub_has_them(edge)
        assert [each["outcome"] for each in found[:3]] == ["dead", "completed", "completed"]
        assert (found[0]["device"], found[0]["worker"]) == ("d1", "w1")
        assert found[0]["error_message"] == "no paper"

        await edge.device.restart()
        await work(edge, *range(9, 12))
        assert len(await the_hub_has_them(edge)) == 12
        numbers = (await edge.far.get("/history", limit=100)).doc["records"]
        assert [each["seq"] for each in numbers] == list(range(1, 13))


async def test_records_wait_a_minute_for_others(tmp_path: Path) -> None:
    async with recording(tmp_path).running() as edge:
        await edge.lay()
        await edge.known()
        requests = edge.link.records
        await work(edge, 1, 2)
        await work(edge, 4, 5)
        assert await records(edge.far) == [] and edge.link.records == requests

        async def is_there() -> bool:
            edge.device.clock.advance(60_000)
            return len(await records(edge.far)) == 4

        await until(is_there)


async def swallowed(edge: Edge) -> bool:
    """Whether an answer was lost. A pause of the lane may begin after another was ended."""
    await edge.hurry()
    return not edge.cable.swallows


async def test_lost_answers_and_kills_store_no_record_twice(tmp_path: Path) -> None:
    async with recording(tmp_path).running() as edge:
        await edge.lay()
        for start in range(0, 40, 10):
            await work(edge, *range(start, start + 10))
            edge.cable.swallows, edge.cable.swallowing = 1, b"/history "
            await until(partial(swallowed, edge))
            await edge.crash(edge.device if start % 20 else edge.hub)
        assert len(await the_hub_has_them(edge)) == 40


async def test_a_restored_device_goes_on_behind_what_the_hub_has(tmp_path: Path) -> None:
    async with recording(tmp_path).running() as edge:
        await edge.lay()
        await work(edge, 1, 2, 4)
        await the_hub_has_them(edge)
        await edge.device.stop()
        backup = restored(copied(edge.device, tmp_path / "backup"))
        await edge.device.start()
        await work(edge, 5)
        before = await the_hub_has_them(edge)

        await edge.device.stop()
        edge.device.root = backup
        await edge.far.delete("/devices/d1")
        await edge.device.start()
        await work(edge, 7, 8)

        async def has() -> bool:
            await edge.hurry()
            return len(await records(edge.far)) >= 6

        await until(has)
        own = await records(edge.near)
        assert await records(edge.far) == [*before, *own[3:]]


async def test_a_hub_that_was_restored_gets_again_what_it_has_lost(tmp_path: Path) -> None:
    async with recording(tmp_path).running() as edge:
        await edge.lay()
        await work(edge, 1, 2)
        await the_hub_has_them(edge)
        await edge.hub.stop()
        backup = restored(copied(edge.hub, tmp_path / "backup"))
        await edge.hub.start()
        edge.cable.target = edge.hub.port
        await work(edge, 4, 5)
        await the_hub_has_them(edge)

        await edge.hub.stop()
        edge.hub.root = backup
        await edge.restart_hub()
        assert len(await the_hub_has_them(edge)) == 4


async def test_a_rule_keeps_the_history_here(tmp_path: Path) -> None:
    async with recording(tmp_path).running() as edge:
        await edge.lay(history=False)
        await work(edge, 1)
        await edge.known()
        assert not edge.device.server.services[Links].senders
