"""Lanes between two servers: each job is at the hub once, in order, whatever ends in between."""

from pathlib import Path
from typing import Any

import pytest
from conformance.claims import set_queue

from zq.features.forward.model import LaneNotFound

from .edge import Edge, copied, restored, until


async def test_jobs_arrive_in_order_and_are_gone_here(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.push(*range(700))
        await edge.lay(batch=200)
        await edge.push(*range(700, 1500))

        assert await edge.eventually(1500) == list(range(1500))
        assert await edge.left() == []
        assert edge.progress.arrived == 1500 and edge.progress.error is None


async def test_what_a_job_came_with_travels_along(tmp_path: Path) -> None:
    came_with: dict[str, Any] = {
        "priority": 7,
        "group": "g",
        "meta": {"a": [1]},
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "content_type": "text/plain",
        "unique_key": "k",
        "unique_while": "exists",
        "unique_in": "queue",
        "retry_limit": 3,
        "backoff": {"exponent": 1.0, "base_ms": 5, "jitter_ms": 0},
        "lease_ms": 900,
        "dead_letter": "graves",
        "fair_key": "tenant",
        "budgets": [{"key": "b", "cost": 2}],
    }
    async with Edge(tmp_path).running() as edge:
        for client in (edge.near, edge.far):
            made = await client.call(
                "PUT", "/budgets/b", {"allocation": 3, "strategy": {"type": "while_in_flight"}}
            )
            assert made.status in (200, 201), made.body
        await edge.push("x" * 5000, ttl_ms=60_000, **came_with)
        edge.device.clock.advance(20_000)
        await edge.lay()
        await edge.eventually(1)

        (job,) = await edge.jobs_of(edge.far)
        whole = (await edge.far.get(f"/jobs/{job['id']}")).doc

        for name, value in came_with.items():
            if name != "budgets":
                assert whole[name] == value, name
        assert [draw["key"] for draw in whole["budgets"]] == ["b"]
        assert whole["payload"] == "x" * 5000
        assert whole["expires_at"] - edge.hub.now == 40_000


async def test_a_job_that_lacks_the_field_of_its_fair_key_arrives_without_a_key(
    tmp_path: Path,
) -> None:
    """It shares the empty key of the device. At the hub it has what the queue there says."""
    async with Edge(tmp_path).running() as edge:
        await set_queue(edge.near, "out", fair={"key": "payload.tenant"})
        await edge.push({"tenant": "a", "shop": 1}, {"shop": 2}, {})
        await edge.lay()
        await edge.eventually(3)
        await set_queue(edge.far, "out", fair={"key": "payload.shop"})
        await edge.push({"tenant": "a", "shop": 1}, {"shop": 2}, {})
        await edge.eventually(6)

        keys = [job.get("fair_key") for job in await edge.jobs_of(edge.far)]
        assert keys == ["a", None, None, "a", "2", None]
        shown = (await edge.far.get("/queues/out/fair")).doc["keys"]
        assert sorted(key["key"] for key in shown) == ["", "2", "a"]


async def test_a_hub_that_is_away_finds_everything_when_it_is_back(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay(batch=10)
        await edge.push(*range(50))
        await edge.eventually(50)
        await edge.hub.stop()
        await edge.push(*range(50, 100))
        await until(lambda: edge.progress.state == "waiting")
        assert edge.progress.error_code == "unreachable"

        await edge.hub.start()
        edge.cable.target = edge.hub.port
        await edge.hurry()

        assert await edge.eventually(100) == list(range(100))


async def test_an_answer_that_is_lost_stores_nothing_twice(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay(batch=10)
        await edge.push(0)
        await edge.eventually(1)
        for round in range(5):
            edge.cable.swallows = 2
            await edge.push(*range(1 + round * 40, 41 + round * 40))
            lost = 2 * (round + 1)

            async def swallowed(lost: int = lost) -> bool:
                await edge.hurry()
                return edge.cable.swallowed >= lost

            await until(swallowed)
            await edge.hurry()

        assert await edge.eventually(201) == list(range(201))


async def test_either_side_may_die_at_any_time(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay(batch=20)
        for round in range(4):
            await edge.push(*range(round * 100, round * 100 + 100))
            await until(lambda round=round: edge.progress.arrived > 0)  # type: ignore[misc]
            await edge.crash(edge.hub if round % 2 else edge.device)

        assert await edge.eventually(400) == list(range(400))


async def test_a_restored_device_drops_what_the_hub_has(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay(batch=10)
        await edge.push(*range(10))
        await edge.eventually(10)
        # These have numbers, and no answer has come.
        edge.cable.cut()
        await edge.push(*range(10, 30))
        await until(lambda: edge.progress.state == "waiting")
        await edge.device.stop()
        backup = copied(edge.device, tmp_path / "backup")
        edge.cable.target = edge.hub.port
        await edge.device.start()
        await edge.push(*range(30, 40))
        await edge.eventually(40)
        await edge.device.stop()

        # The hub cannot know that the device it has heard of is gone.
        await edge.far.delete("/devices/d1")
        edge.device.root = restored(backup)
        await edge.device.start()
        await edge.push(*range(40, 50))

        assert sorted(set(await edge.eventually(50))) == list(range(50))


@pytest.mark.parametrize("starts", [0, 1, 3])
@pytest.mark.parametrize("refuses", [False, True])
async def test_a_restored_hub_gets_what_comes_next(
    tmp_path: Path, starts: int, refuses: bool
) -> None:
    """The lane has begun other epochs since the backup: at each start, and with a refused job."""
    async with Edge(tmp_path, {"max_payload": 1000}).running() as edge:
        await edge.lay(batch=10)
        await edge.push(*range(10))
        await edge.eventually(10)
        await edge.hub.stop()
        backup = copied(edge.hub, tmp_path / "backup")
        await edge.hub.start()
        edge.cable.target = edge.hub.port
        await edge.hurry()
        for _ in range(starts):
            await edge.device.restart()
            await until(lambda: edge.progress.state == "idle")
        if refuses:
            await edge.push("x" * 2000)
            await until(lambda: edge.progress.refused)
        await edge.push(*range(10, 20))
        await edge.eventually(20)
        await edge.hub.stop()

        edge.hub.root = restored(backup)
        await edge.hub.start()
        edge.cable.target = edge.hub.port
        await edge.hurry()
        await edge.push(*range(20, 30))

        # What the backup lacks was acknowledged, and is gone from the device.
        assert await edge.eventually(20) == [*range(10), *range(20, 30)]


async def test_a_start_that_fails_twice_to_take_over_does_so_in_the_end(tmp_path: Path) -> None:
    """The hub has taken the first epoch, and the device does not know it. The second is lost."""
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.push(1)
        await edge.eventually(1)
        for payload in (2, 3):
            edge.cable.swallows, edge.cable.loses, edge.cable.losing = 1, 1, b'"after":'
            await edge.device.restart()
            await edge.push(payload)
            await until(lambda: not edge.cable.loses)
            await until(lambda: edge.progress.state == "waiting")
            assert edge.progress.error_code == "unreachable"
            await edge.hurry()

            assert await edge.eventually(payload) == list(range(1, payload + 1))


async def test_a_refused_job_is_dead_here_and_blocks_nobody(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.hub.restart(max_payload=1000)
        edge.cable.target = edge.hub.port
        large = "x" * 2000
        await edge.push(*range(5), large, *range(5, 10), large)
        await edge.lay()

        await until(lambda: edge.progress.refused == 2)
        await until(lambda: edge.progress.arrived == 10)

        assert await edge.arrived() == list(range(10))
        (first, second) = await edge.left()
        assert first["status"] == second["status"] == "dead"
        errors = (await edge.near.get(f"/jobs/{first['id']}/errors")).doc["errors"]
        assert "at most 1000 are allowed" in errors[0]["message"]


async def test_a_job_that_was_cancelled_under_way_leaves_no_gap(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await until(lambda: edge.progress.state == "idle")
        edge.cable.cut()
        await edge.push(*range(5))
        await until(lambda: edge.progress.state == "waiting")
        jobs = await edge.left()
        assert {job["status"] for job in jobs} == {"in_flight"}
        await edge.near.delete(f"/jobs/{jobs[2]['id']}")

        edge.cable.target = edge.hub.port
        await edge.hurry()

        assert await edge.eventually(4) == [0, 1, 3, 4]


async def test_a_paused_lane_keeps_its_jobs(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        await edge.push(1, 2)
        await edge.device.restart()
        assert len(await edge.left()) == 2 and await edge.arrived() == []

        await edge.hurry()

        assert await edge.eventually(2) == [1, 2]


async def test_of_two_devices_with_one_name_the_second_is_refused(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.push(1)
        await edge.eventually(1)
        await edge.device.stop()
        first, edge.device.root = edge.device.root, tmp_path / "second"
        await edge.device.start()
        await edge.lay()
        await edge.push(2)

        await until(lambda: edge.progress.error_code == "lane_fenced")
        assert await edge.arrived() == [1]
        await edge.lanes.pause("up", paused=False, take_over=True)
        assert await edge.eventually(2) == [1, 2]

        await edge.device.stop()
        edge.device.root = first
        await edge.device.start()
        await until(lambda: edge.progress.error_code == "lane_fenced")


async def test_a_lane_that_nobody_fences_uses_its_permission_to_take_over_up(
    tmp_path: Path,
) -> None:
    """Otherwise it would take the name from another device weeks later, and nobody would know."""
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.push(1)
        await edge.eventually(1)
        await until(lambda: edge.progress.state == "idle")
        await edge.lanes.pause("up", paused=False, take_over=True)
        assert not edge.lanes.take_overs
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        await edge.lanes.pause("up", paused=False, take_over=True)
        await until(lambda: "up" not in edge.lanes.take_overs)
        with pytest.raises(LaneNotFound):
            await edge.lanes.pause("down", paused=False, take_over=True)
        assert "down" not in edge.lanes.take_overs


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_hub_must_answer_from_its_disk(tmp_path: Path, allowed: bool) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.hub.restart(enqueue_commit_mode="buffered")
        edge.cable.target = edge.hub.port
        await edge.push(1)
        await edge.lay(buffered=allowed)

        if allowed:
            assert await edge.eventually(1) == [1]
        else:
            await until(lambda: edge.progress.error_code == "hub_is_buffered")
            assert await edge.arrived() == []


async def test_a_device_reports_to_its_hub_and_follows_itself(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await edge.push(1)
        await edge.eventually(1)
        shown = (await edge.far.get("/devices/d1")).doc
        assert shown["lanes"][0]["name"] == "up"

        await edge.device.restart()
        await edge.push(2)
        await edge.eventually(2)
        again = (await edge.far.get("/devices/d1")).doc
        assert again["lanes"] and edge.progress.error is None


async def test_a_restored_device_drops_what_has_arrived_in_an_epoch_long_over(
    tmp_path: Path,
) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        await until(lambda: edge.progress.state == "idle")
        # The hub has these, and its answer is lost: the backup has them with numbers.
        edge.cable.swallows = 1
        await edge.push(*range(10))
        await until(lambda: edge.cable.swallowed)
        edge.cable.cut()
        await edge.device.stop()
        backup = copied(edge.device, tmp_path / "backup")
        edge.cable.target = edge.hub.port
        for start in range(3):
            await edge.device.start()
            await edge.push(10 + start)
            await edge.eventually(11 + start)
            await edge.device.stop()

        await edge.far.delete("/devices/d1")
        edge.device.root = restored(backup)
        await edge.device.start()

        assert await edge.eventually(13) == list(range(13))
        assert await edge.left() == []
