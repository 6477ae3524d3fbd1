"""What is known of a lane's bounds stays known while lanes change and requests wait for room."""

from pathlib import Path

from zq.features.forward.service_bounds import LaneBounds

from .edge import Edge, until
from .test_bounds import bound, pushed


async def test_a_change_of_a_lane_lets_no_job_beyond_the_bound(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=1000)
        assert (await pushed(edge, 900)).status == 201
        assert (await pushed(edge, 400)).status == 507
        await edge.lanes.pause("up", paused=True)
        # This comes within a second of the change, and a new count only later.
        await edge.device.server.services[LaneBounds]._follow()
        assert (await pushed(edge, 400)).status == 507


async def test_a_request_that_makes_room_counts_after_jobs_have_arrived(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await bound(edge, max_bytes=1000, when_full="drop_oldest")
        await edge.push("x" * 898)
        edge.cable.target = edge.hub.port
        await edge.hurry()
        await until(lambda: edge.progress.arrived == 1)
        await edge.lanes.pause("up", paused=True)
        await until(lambda: edge.progress.state == "paused")
        bounds = edge.device.server.services[LaneBounds]
        await bounds.stop()
        known = bounds._bounds["up"]
        known.bytes, known.arrived = 900, 0
        assert (await pushed(edge, 400)).status == 201
        assert known.bytes == 400
