"""What a lane costs on the wire, by counted bytes."""

from pathlib import Path
from random import Random

from .edge import Edge

JOBS = 5_000
BATCH = 500


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


async def test_a_job_takes_up_to_60_bytes_on_the_wire(tmp_path: Path) -> None:
    random = Random(1)
    async with Edge(tmp_path).running() as edge:
        for start in range(0, JOBS, 1000):
            await edge.push(*(reading(random, start + n) for n in range(1000)))
        await edge.lay(batch=BATCH)
        await edge.eventually(JOBS)

        assert (edge.cable.up + edge.cable.down) / JOBS <= 60
