"""The way back between two servers: each job is at its device once, whatever ends in between."""

from pathlib import Path
from typing import Any

import pytest
from conformance.claims import claim, set_queue
from conformance.client import Doc

from zq.features.forward.peer_presence import Presence
from zq.model.keys import digest_of, make_key

from .edge import Edge, copied, restored, until


async def send(edge: Edge, *payloads: Any, **fields: Any) -> list[str]:
    """Have the hub store jobs for the device, which it has to know."""
    await edge.known()
    fields = {"queue": "commands", "type": "t", "to": "d1"} | fields
    jobs = [fields | {"payload": each} for each in payloads]
    reply = await edge.far.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201, reply.body
    return [job["id"] for job in reply.doc["jobs"]]


async def at_device(edge: Edge, count: int) -> list[Any]:
    """The payloads of the device's commands, once it has so many and the hub has none."""

    async def has() -> bool:
        here = await edge.near.get("/jobs/count", queue="commands")
        left = await edge.far.get("/jobs/count", status="ready,in_flight,scheduled")
        return bool(here.doc["count"] >= count and not left.doc["count"])

    await until(has)
    return [job["payload"] for job in await commands(edge)]


async def commands(edge: Edge) -> list[Doc]:
    return [job for job in await edge.left() if job["queue"] == "commands"]


async def test_jobs_for_a_device_come_to_its_workers_in_order(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await send(edge, 1, 2, meta={"a": 1}, priority=7)
        assert await at_device(edge, 2) == [1, 2]
        await send(edge, *range(3, 1500))

        assert await at_device(edge, 1499) == list(range(1, 1500))
        first = (await commands(edge))[0]
        assert (first["meta"], first["priority"], "to" in first) == ({"a": 1}, 7, False)
        assert [job["payload"] for job in await claim(edge.near, "commands", max=2)] == [1, 2]


async def test_a_job_that_lacks_the_field_of_its_fair_key_comes_without_a_key(
    tmp_path: Path,
) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.known()
        await set_queue(edge.far, "to%2Fd1%2Fcommands", fair={"key": "payload.tenant"})
        await send(edge, {"tenant": "a"}, {})

        assert await at_device(edge, 2) == [{"tenant": "a"}, {}]
        assert [job.get("fair_key") for job in await commands(edge)] == ["a", None]


async def test_a_device_keeps_the_job_that_has_a_unique_key(tmp_path: Path) -> None:
    """The key is one of the queue, there as here."""
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        key = {"queue": "commands", "type": "t", "unique_key": "cfg", "unique_in": "queue"}
        await edge.near.post("/jobs", key | {"payload": "own"})
        await edge.near.post("/jobs", key | {"queue": "other", "payload": "other"})
        await send(edge, "late", unique_key="cfg")
        await send(edge, "next")
        assert await at_device(edge, 2) == ["own", "next"]


async def test_a_paused_lane_still_listens(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.lanes.pause("up", paused=True)
        await send(edge, 1)
        assert await at_device(edge, 1) == [1]


async def test_answers_that_are_lost_store_nothing_twice(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await send(edge, 0)
        await at_device(edge, 1)
        for start in range(1, 31, 10):
            edge.cable.swallows, edge.cable.swallowing = 1, b"/fetch "
            await send(edge, *range(start, start + 10))
            await until(lambda: not edge.cable.swallows)
            await edge.hurry()
        assert await at_device(edge, 31) == list(range(31))


async def test_either_side_may_die_at_any_time(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        for start in range(0, 40, 10):
            await send(edge, *range(start, start + 10))
            await edge.crash(edge.device if start % 20 else edge.hub)
        assert await at_device(edge, 40) == list(range(40))


async def test_a_restored_device_gets_what_it_has_not_told_of(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await send(edge, 1)
        await at_device(edge, 1)
        await edge.device.stop()
        backup = restored(copied(edge.device, tmp_path / "backup"))
        await edge.device.start()
        await send(edge, 2)
        await at_device(edge, 2)

        await edge.device.stop()
        edge.device.root = backup
        # The hub takes the restored one for another device, until it forgets the lost one.
        assert (await edge.far.delete("/devices/d1")).status in (200, 204)
        await edge.device.start()
        await send(edge, 3)
        assert await at_device(edge, 2) == [1, 3]


async def test_a_restored_hub_goes_on_with_the_device(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await send(edge, 1, 2)
        await at_device(edge, 2)
        await edge.hub.stop()
        backup = restored(copied(edge.hub, tmp_path / "backup"))
        await edge.hub.start()
        edge.cable.target = edge.hub.port
        await edge.hurry()
        await send(edge, 3)
        assert await at_device(edge, 3) == [1, 2, 3]

        # The hub knows an earlier start of the device then.
        await edge.device.restart()
        await send(edge, 4)
        await at_device(edge, 4)
        await edge.hub.stop()
        edge.hub.root = backup
        await edge.restart_hub()
        await send(edge, 5)
        assert await at_device(edge, 5) == [1, 2, 3, 4, 5]


async def test_a_job_that_the_device_refuses_is_dead_at_the_hub_and_blocks_nobody(
    tmp_path: Path,
) -> None:
    async with Edge(tmp_path).running() as edge:
        schema = {"type": "long"}
        made = await edge.near.call("PUT", "/queues/strict/schema", {"schema": schema})
        assert made.status in (200, 201), made.body
        await edge.lay()
        jobs = [
            {"queue": "commands", "type": "t", "payload": 1, "to": "d1"},
            {"queue": "strict", "type": "t", "payload": "wrong", "to": "d1"},
            {"queue": "commands", "type": "t", "payload": 2, "to": "d1"},
        ]
        await edge.known()
        assert (await edge.far.post("/jobs/bulk", {"jobs": jobs})).status == 201

        assert await at_device(edge, 2) == [1, 2]
        (dead,) = (await edge.far.get("/jobs", status="dead", last_error="true")).doc["jobs"]
        assert dead["payload"] == "wrong" and "schema_mismatch" in dead["last_error"]["error_type"]


async def test_a_device_without_room_gets_its_jobs_later(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        limited = await edge.near.call("PATCH", "/queues/commands/settings", {"max_depth": 1})
        assert limited.status == 200, limited.body
        await edge.lay()
        await send(edge, 1, 2, 3)
        await until(lambda: edge.link.error_code == "queue_full")
        assert await commands(edge) == []

        await edge.near.call("PATCH", "/queues/commands/settings", {"max_depth": None})
        await edge.hurry()
        assert await at_device(edge, 3) == [1, 2, 3]


async def test_a_start_that_told_nobody_does_not_lock_the_device_out(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.known()
        # Neither side learns how the report of the next start has ended.
        edge.cable.swallows, edge.cable.swallowing = 1, b"PUT /devices"
        await edge.device.restart()
        await until(lambda: not edge.cable.swallows)
        edge.cable.cut()
        await edge.device.restart()
        edge.cable.target = edge.hub.port
        await edge.hurry()

        await send(edge, 1)
        assert await at_device(edge, 1) == [1]


async def test_a_buffered_device_tells_of_jobs_that_are_on_its_disk(tmp_path: Path) -> None:
    edge = Edge(tmp_path, default_commit_mode="buffered", enqueue_commit_mode="buffered")
    async with edge.running():
        await edge.lay()
        await send(edge, 1)

        async def is_told() -> bool:
            # The device syncs a second later.
            edge.device.clock.advance(1_000)
            left = await edge.far.get("/jobs/count", status="ready,in_flight")
            return not left.doc["count"]

        await until(is_told)
        assert [job["payload"] for job in await commands(edge)] == [1]


@pytest.mark.parametrize("producers", [",producers=d1/*", ""])
async def test_a_device_fetches_with_the_key_that_is_bound_to_it(
    tmp_path: Path, producers: str
) -> None:
    keys = [
        make_key(name, digest_of(name.encode()), scopes, [])
        for name, scopes in (("all", "enqueue,read,manage"), ("device", f"enqueue{producers}"))
    ]
    file = tmp_path / "keys"
    file.write_text("".join(f"{key.line}\n" for key in keys))
    async with Edge(tmp_path, {"keys": file}).running(key="all") as edge:
        await edge.lay(token="device")
        await send(edge, 1)
        if producers:
            assert await at_device(edge, 1) == [1]
        else:
            await until(lambda: edge.link.error_code == "device_key_needed")
            assert "producers=d1/*" in str(edge.link.error)
            # The next try is minutes away, unless the hub is heard of.
            edge.device.clock.advance(5)
            edge.device.server.services[Presence].note(edge.url, None, None)
            await until(lambda: edge.link.failed_at == edge.device.now)
