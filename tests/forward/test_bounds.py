"""Bounds of a lane: new jobs are refused over them, or the oldest ones go."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conformance.client import Reply
from store.rig import Ticker, new_job

from zq.features.forward.commands import PutLane
from zq.features.forward.model import LaneFull, LaneRule
from zq.features.forward.service import LaneBounds
from zq.features.forward.store import LaneReads
from zq.model.commands import EnqueueResult, SetQueue
from zq.model.errors import QueueFull, ReadTimeout
from zq.model.settings import QueueSettings

from .edge import Edge, until

DAY_MS = 86_400_000
YEARS_MS = 50 * 365 * DAY_MS


async def pushed(edge: Edge, size: int, queue: str = "out", payload: str = "x") -> Reply:
    job = {"queue": queue, "type": "t", "payload": payload.ljust(size - 2, ".")}
    return await edge.near.post("/jobs", job)


async def look(edge: Edge) -> None:
    """Count what waits, as happens every second."""
    bounds = edge.device.server.services[LaneBounds]
    await bounds._follow()
    await bounds._enforce_bounds()


async def only_asked(edge: Edge) -> None:
    """Let no look come but those of the test: its mark could lie just before a job."""
    await edge.device.server.services[LaneBounds].stop()


async def bound(edge: Edge, **rule: Any) -> None:
    """Lay a lane with bounds to a hub that is away."""
    edge.cable.cut()
    await edge.lay(**rule)


async def test_a_full_lane_refuses_new_jobs_until_some_are_gone(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=1000)
        assert [(await pushed(edge, 400)).status for _ in range(3)] == [201, 201, 507]
        refused = await pushed(edge, 400)
        assert refused.headers["zq-error"] == "lane_full"
        assert "800 of 1,000 bytes wait" in refused.error
        assert (await pushed(edge, 400, "other")).status == 201
        assert (await pushed(edge, 200)).status == 201
        edge.device.clock.advance(10_000)
        assert (await edge.lanes.status_of("up")).bytes == 1000

        edge.cable.target = edge.hub.port
        await edge.hurry()
        await until(lambda: edge.progress.arrived == 3)
        assert (await pushed(edge, 400)).status == 201


def test_what_a_lane_or_a_queue_refuses_takes_no_room_from_the_rest_of_its_tick(
    ticker: Ticker,
) -> None:
    rule = LaneRule(("out",), url="http://127.0.0.1:1", max_bytes=100)
    ticker.run(PutLane("up", rule, "e.1"), SetQueue("q", QueueSettings(max_depth=2)))
    large, small = (new_job(queue="out", payload=f'"{"x" * size}"') for size in (198, 78))
    replies = ticker.run(
        ticker.enqueue([new_job(), new_job(), large]),
        ticker.enqueue([new_job()]),
        ticker.enqueue([new_job(), new_job(), small]),
        ticker.enqueue([small]),
    ).replies
    assert [type(reply) for reply in replies] == [LaneFull, EnqueueResult, QueueFull, EnqueueResult]
    assert sorted(job.queue for job in ticker.jobs().values()) == ["out", "q"]


async def test_a_lane_whose_oldest_job_waits_too_long_refuses_new_ones(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_age_ms=60_000)
        assert (await pushed(edge, 9)).status == 201
        await look(edge)
        edge.device.clock.advance(61_000)
        await look(edge)
        assert "a job waits for 61 s" in (await pushed(edge, 9)).error


async def test_the_oldest_jobs_make_room_and_are_counted(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.push(*("x" * 98 + str(n) for n in range(10)), queue="out")
        await edge.push("stays", queue="other")
        await bound(edge, max_bytes=500, when_full="drop_oldest")
        await until(lambda: edge.progress.dropped)
        left = [job["payload"][-1] for job in await edge.left()]
        assert left[-1] == "s" and left[:-1] == list("56789")[-len(left) + 1 :]
        assert edge.progress.dropped == 11 - len(left)


async def test_a_lane_that_drops_its_oldest_jobs_never_has_more_than_it_may(
    tmp_path: Path,
) -> None:
    async def waiting() -> int:
        return sum(len(job["payload"]) + 2 for job in await edge.left())

    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=1000, when_full="drop_oldest")
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        for _ in range(15):
            assert (await pushed(edge, 150)).status == 201
            assert await waiting() <= 1000
        assert edge.progress.dropped == 9 and await waiting() == 900

        await edge.push(*["x" * 98] * 7)
        assert 800 < await waiting() <= 1000

        replies = await asyncio.gather(*(pushed(edge, 100) for _ in range(30)))
        assert {reply.status for reply in replies} == {201}
        assert 900 <= await waiting() <= 1000


async def test_a_bound_is_met_by_what_waits_however_it_came_or_left(tmp_path: Path) -> None:
    """Nothing is dropped or refused for jobs that are gone, and all count that came back."""

    async def waiting() -> list[str]:
        return sorted(job["payload"][0] for job in await edge.left() if job["status"] == "ready")

    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=1015, when_full="drop_oldest")
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        for name in "abcde":
            assert (await pushed(edge, 200, payload=name)).status == 201
        jobs = {job["payload"][0]: job["id"] for job in await edge.left()}
        await edge.near.post(f"/jobs/{jobs['d']}/cancel", {})
        await edge.near.send("DELETE", f"/jobs/{jobs['e']}")
        assert (await pushed(edge, 200, payload="f")).status == 201
        assert (await pushed(edge, 200, payload="g")).status == 201
        assert await waiting() == list("abcfg") and edge.progress.dropped == 0

        other = await pushed(edge, 200, "other", payload="h")
        await edge.near.patch(f"/jobs/{other.doc['id']}", {"queue": "out"})
        assert (await pushed(edge, 200, payload="i")).status == 201
        assert await waiting() == list("cfghi") and edge.progress.dropped == 2


async def test_a_change_of_a_lane_lets_no_job_beyond_the_bound(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=1000)
        assert (await pushed(edge, 900)).status == 201
        for rule in ({"max_bytes": 1100}, {"max_bytes": 1000, "batch": 7}):
            await edge.lanes.pause("up", paused=True)
            assert (await pushed(edge, 400)).status == 507
            await edge.lay(**rule)
            assert (await pushed(edge, 400)).status == 507


async def test_a_full_lane_has_room_again_once_a_job_is_cancelled(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=1000)
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        replies = [await pushed(edge, 400) for _ in range(3)]
        assert [reply.status for reply in replies] == [201, 201, 507]
        await edge.near.post(f"/jobs/{replies[0].doc['id']}/cancel", {})
        assert [(await pushed(edge, 400)).status for _ in range(2)] == [201, 507]


async def test_what_is_dropped_is_in_the_history(tmp_path: Path) -> None:
    async with Edge(tmp_path, history=86_400_000).running() as edge:
        await bound(edge, max_bytes=1000, when_full="drop_oldest")
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        replies = [await pushed(edge, 400) for _ in range(3)]
        (record,) = (await edge.near.get("/history")).doc["records"]
        assert (record["job_id"], record["outcome"]) == (replies[0].doc["id"], "expired")


async def test_jobs_beyond_an_age_are_dropped(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay(max_age_ms=60_000, when_full="drop_oldest")
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        await edge.push(1, 2)
        await look(edge)
        edge.device.clock.advance(50_000)
        await edge.push(3)
        edge.device.clock.advance(20_000)
        await look(edge)

        assert [job["payload"] for job in await edge.left()] == [3]
        assert edge.progress.dropped == 2


@pytest.mark.parametrize("by", [YEARS_MS, -DAY_MS, -YEARS_MS])
async def test_a_clock_that_is_set_drops_no_job_and_keeps_none(tmp_path: Path, by: int) -> None:
    """The age of a job is the time that has passed, also over starts of the machine."""

    async def left() -> list[Any]:
        await look(edge)
        return [job["payload"] for job in await edge.left()]

    async with Edge(tmp_path).running() as edge:
        await only_asked(edge)
        await edge.lay(max_age_ms=7 * DAY_MS, when_full="drop_oldest")
        await edge.lanes.pause("up", paused=True)
        await edge.push(1, 2)
        assert await left() == [1, 2]
        clock = edge.device.clock
        clock.advance(DAY_MS)
        clock.step(by)
        await edge.push(3)
        assert await left() == [1, 2, 3]

        await edge.device.stop()
        clock.reboot()
        clock.advance(3 * DAY_MS)
        await edge.device.start()
        await only_asked(edge)
        assert await left() == [1, 2, 3]
        clock.step(-by)
        await edge.push(4)
        assert await left() == [1, 2, 3, 4]

        clock.advance(3 * DAY_MS)
        assert await left() == [3, 4]
        clock.advance(2 * DAY_MS)
        assert await left() == [4]


@pytest.mark.parametrize("by", [YEARS_MS, -YEARS_MS])
async def test_a_clock_that_is_set_has_new_jobs_refused_neither_sooner_nor_later(
    tmp_path: Path, by: int
) -> None:
    async def is_late() -> bool:
        await look(edge)
        return (await pushed(edge, 9)).status == 507

    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_age_ms=7 * DAY_MS)
        await edge.push(1)
        assert not await is_late()
        edge.device.clock.advance(DAY_MS)
        edge.device.clock.step(by)
        assert not await is_late()
        edge.device.clock.advance(5 * DAY_MS)
        assert not await is_late()
        edge.device.clock.advance(DAY_MS)
        assert await is_late()
        edge.device.clock.step(-by)
        assert await is_late()


async def test_a_job_is_old_by_the_time_since_it_was_due(tmp_path: Path) -> None:
    """A job that waits for its date, or for a second life, does not wait on the lane."""

    async def left() -> list[Any]:
        await look(edge)
        return [job["payload"] for job in await edge.left()]

    async with Edge(tmp_path).running() as edge:
        await only_asked(edge)
        await edge.lay(max_age_ms=DAY_MS, when_full="drop_oldest")
        await edge.lanes.pause("up", paused=True)
        await edge.push(1, ready_at=edge.device.now + 3 * DAY_MS)
        await edge.push(2)
        assert await left() == [1, 2]
        edge.device.clock.advance(2 * DAY_MS)
        assert await left() == [1]
        edge.device.clock.advance(DAY_MS + 1000)
        await edge.push(3)
        assert await left() == [1, 3]
        edge.device.clock.advance(DAY_MS)
        assert await left() == []


async def test_a_full_disk_still_drains(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.push(*range(30))
        await edge.device.restart(disk_reserve=2**52)
        assert (await pushed(edge, 9)).status == 507

        await edge.lay(batch=10)

        assert await edge.eventually(30) == list(range(30))


async def test_a_lane_whose_jobs_take_too_long_to_look_at_stops_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the start of the device, nor the bounds of other lanes."""

    async def slow(reads: LaneReads, queues: Sequence[str]) -> int:
        raise ReadTimeout("the disk is slow")

    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=500, when_full="drop_oldest")
        rule = LaneRule(("other",), edge.url, max_age_ms=60_000)
        await edge.lanes.put("z", rule)
        assert (await pushed(edge, 9)).status == 201
        monkeypatch.setattr(LaneReads, "waiting_bytes", slow)
        await edge.device.restart()
        assert (await pushed(edge, 9, "other")).status == 201
        await look(edge)
        edge.device.clock.advance(61_000)
        await look(edge)
        assert "a job waits for 61 s" in (await pushed(edge, 9, "other")).error
