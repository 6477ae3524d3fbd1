"""What a lane costs on the wire, by counted bytes."""

from pathlib import Path
from random import Random

import pytest

from zq.features.devices.engine import DeviceBell, WaitingFetch
from zq.features.forward.model import LaneRule
from zq.features.forward.peer_link import HOLD_MS

from .edge import Edge, hear_of_another, until

JOBS = 5_000
BATCH = 500

ROUNDS = 8
"""So many requests of an idle device are counted."""


def reading(random: Random, number: int) -> dict[str, object]:
    """A payload of about 100 bytes, as devices send them."""
    return {
        "sensor": f"press-{random.randrange(40):02}",
        "at": 1_750_000_000_000 + number * 250,
        "bar": round(random.gauss(82.5, 3.0), 2),
        "celsius": round(random.gauss(61.0, 1.5), 1),
        "ok": random.random() < 0.99,
        "serial": f"{random.getrandbits(48):012x}",
    }


@pytest.mark.parametrize("shared", [False, True])
async def test_a_job_takes_up_to_60_bytes_on_the_wire(tmp_path: Path, shared: bool) -> None:
    random = Random(1)
    async with Edge(tmp_path).running() as edge:
        if shared:
            # A hub of several devices asks for small batches.
            await hear_of_another(edge)
        for start in range(0, JOBS, 1000):
            await edge.push(*(reading(random, start + n) for n in range(1000)))
        await edge.lay(batch=BATCH)
        await edge.eventually(JOBS)

        assert (edge.cable.up + edge.cable.down) / JOBS <= 60


async def test_an_idle_device_costs_up_to_100_kb_a_day(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.lay("sensor*")
        await edge.lanes.put("alarms", LaneRule(("alarms",), edge.url))
        waiting = edge.hub.server.engine[DeviceBell].listens
        await until(lambda: "d1" in waiting)

        before = edge.cable.up + edge.cable.down
        for _ in range(ROUNDS):
            former = waiting["d1"]

            def is_another(former: WaitingFetch = former) -> bool:
                return waiting.get("d1", former) is not former

            edge.device.clock.advance(HOLD_MS)
            edge.hub.clock.advance(HOLD_MS)
            await until(is_another)
        a_day = (edge.cable.up + edge.cable.down - before) / ROUNDS * 86_400_000 / HOLD_MS

        assert a_day <= 100_000
        seen = (await edge.far.get("/devices/d1")).doc
        assert len(seen["lanes"]) == 2 and seen["reported_at"] == edge.hub.now
