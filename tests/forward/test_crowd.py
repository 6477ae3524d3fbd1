"""A hub of many devices is not flooded, and hears soon of what has changed."""

from pathlib import Path
from random import Random

from conformance.client import Doc

from zq.features.forward.peer_hub import LOOK_S
from zq.features.forward.peer_presence import BOOT_S, FIRST_S, Presence, first_pause_s
from zq.features.forward.peer_pusher import LONGEST_PAUSE_S, pause_s

from .edge import Edge, hear_of_another, until


def most_within_a_second(times: list[float]) -> int:
    return max(sum(at <= other < at + 1.0 for other in times) for at in times)


def test_200_devices_that_have_lost_their_hub_come_back_one_after_the_other() -> None:
    random = Random(1)
    times = [pause_s(9, 0.0, random.random()) for _ in range(200)]

    assert max(times) <= LONGEST_PAUSE_S
    assert most_within_a_second(times) <= 20


def test_200_devices_that_get_their_power_back_connect_one_after_the_other() -> None:
    random = Random(1)
    times = [first_pause_s(9.0, random.random()) for _ in range(200)]

    assert max(times) <= FIRST_S
    assert most_within_a_second(times) <= 20
    assert first_pause_s(BOOT_S, 1.0) == 0.0


async def test_a_device_connects_later_once_its_machine_has_started(tmp_path: Path) -> None:
    """Whoever has it hurry need not wait."""
    async with Edge(tmp_path).running() as edge:
        presence = edge.device.server.services[Presence]
        presence.put_off(1e9)
        await edge.lay()
        await edge.push(1)
        await until(lambda: edge.progress.state == "starting")
        assert not (await edge.far.get("/jobs/count")).doc["count"]
        await edge.hurry()
        assert await edge.eventually(1) == [1]


def test_pauses_double_and_what_a_hub_asks_for_is_the_least() -> None:
    assert [pause_s(failures, 0.0, 1.0) for failures in (0, 1, 2, 50)] == [0.5, 1.0, 2.0, 30.0]
    assert pause_s(3, 17.0, 0.0) == 17.0


async def test_a_lane_waits_as_long_as_its_hub_asks(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.far.patch("/queues/out/settings", {"max_depth": 1})
        await edge.lay()
        await edge.push(1)
        await edge.eventually(1)
        await edge.push(2)
        shown: Doc = {}

        async def is_shown() -> bool:
            """The pause lasts a second, and may be over before it is shown."""
            nonlocal shown
            shown = (await edge.near.get("/forward/up")).doc
            return bool(shown.get("retry_at"))

        await until(is_shown)
        job = {"queue": "out", "type": "t", "payload": 3}
        refused = await edge.far.post("/jobs", job)

        assert shown["error_code"] == refused.headers["zq-error"]
        least = 1000 * int(refused.headers["retry-after"])
        assert shown["retry_at"] - shown["failed_at"] >= least > 0


async def test_a_hub_of_several_devices_asks_for_small_batches(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await hear_of_another(edge)
        await edge.lay()
        await until(lambda: edge.progress.state == "idle")
        edge.cable.cut()
        await edge.push(*range(200))
        await until(lambda: edge.progress.state == "waiting")

        shown = (await edge.near.get("/forward/up")).doc

        assert 0 < shown["under_way"] <= 100
        assert len(await edge.left()) == 200


async def test_a_lone_device_chooses_its_batches(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await until(lambda: edge.progress.state == "idle")
        edge.cable.cut()
        await edge.push(*range(200))
        await until(lambda: edge.progress.state == "waiting")

        assert (await edge.near.get("/forward/up")).doc["under_way"] == 200


async def test_a_hub_hears_of_a_paused_lane_within_a_minute(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await until(lambda: edge.progress.state == "idle")
        await edge.lanes.pause("up", paused=True)

        async def is_known() -> bool:
            edge.device.clock.advance(round(1000 * LOOK_S) + 1)
            lanes = (await edge.far.get("/devices/d1")).doc["lanes"]
            return bool(lanes and lanes[0].get("paused"))

        await until(is_known)
