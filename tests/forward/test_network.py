"""A device at the other end of a real cable, which is pulled, and slow enough to lose packets.

Needs root, `ip`, `tc` and the module `sch_tbf` of the kernel. TCP takes seconds to notice and to
recover, so this is for the long tier. In CI a process carries the bytes (`process.cable`).
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from conformance.client import Client
from crash.lives import seed
from process.network import HERE, Network
from process.server import clean_environment, running

from bench.ports import free_port

from .edge import until

ROUNDS = 8
EACH = 200


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


async def store(network: Network, port: int, numbers: range) -> None:
    """Have the device store jobs, by a program at its end of the cable."""
    lines = "".join(f'{{"queue":"out","type":"t","payload":{n}}}\n' for n in numbers)
    words = ("push", "--file", "-", "--url", f"http://127.0.0.1:{port}")
    process = await asyncio.create_subprocess_exec(
        *(*network.far_away, sys.executable, "-m", "zq.cli", *words),
        env=clean_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    await process.communicate(lines.encode())
    assert process.returncode == 0


async def payloads(client: Client) -> list[int]:
    found: list[int] = []
    page = await client.jobs(limit=2000)
    while page:
        found += [job["payload"] for job in page]
        page = await client.jobs(limit=2000, **{"from": page[-1]["id"]})
    return found


@pytest.mark.long
async def test_each_job_arrives_once_over_a_cable_that_is_pulled_and_slow(
    network: Network, tmp_path: Path
) -> None:
    random = Random(seed())
    exposed = ("--host", "0.0.0.0", "--insecure")
    device_port = free_port()
    async with running(tmp_path / "hub", *exposed) as hub:
        flags = ("--device", "far", "--forward", f"out*=http://{HERE}:{hub.port}")
        stored = 0
        for _ in range(ROUNDS):
            async with running(
                *(tmp_path / "device", *flags, "--port", str(device_port)),
                before=network.far_away,
            ) as device:
                network.slow_down(random.choice(("50kbit", "200kbit", "1mbit")))
                await store(network, device.port, range(stored, stored + EACH))
                await asyncio.sleep(random.uniform(0, 1))
                network.cut()
                await store(network, device.port, range(stored + EACH, stored + 2 * EACH))
                stored += 2 * EACH
                if random.random() < 0.5:
                    await device.kill()
                network.mend()
                network.be_usual()
                await asyncio.sleep(random.uniform(0, 2))
        async with (
            running(tmp_path / "device", *flags, before=network.far_away),
            hub.client() as client,
        ):

            async def is_there() -> bool:
                return await client.count() >= stored

            await until(is_there)
            assert await payloads(client) == list(range(stored))
