"""Commands and history of a device that is killed amid them: each is where it belongs once."""

import asyncio
import random
from functools import partial
from pathlib import Path
from typing import Any

from conformance.client import Client
from process.server import ServerProcess, running

from .edge import until

KILLS = 5
JOBS = 400
"""So many jobs of each side for each kill."""


async def all_of(server: ServerProcess, **query: Any) -> list[Any]:
    """The payloads of jobs of a server, in their order."""
    found: list[Any] = []
    async with server.client() as client:
        page = await client.jobs(limit=2000, **query)
        while page:
            found += [job["payload"] for job in page]
            page = await client.jobs(limit=2000, **query, **{"from": page[-1]["id"]})
    return found


async def test_a_device_that_is_killed_again_and_again_has_each_command_once(
    tmp_path: Path,
) -> None:
    chance = random.Random(36)
    history = ("--history", "7d")
    async with running(tmp_path / "hub", *history, "--device", "hub") as hub:
        url = f"http://127.0.0.1:{hub.port}"
        flags = (*history, "--device", "d1", "--forward", f"out*={url}")
        for kill in range(KILLS):
            async with running(tmp_path / "device", *flags) as device, hub.client() as far:
                await until(partial(_knows, far))
                first = kill * JOBS
                jobs = [
                    {"queue": "commands", "type": "t", "payload": n, "to": "d1"}
                    for n in range(first, first + JOBS)
                ]
                async with device.client() as near:
                    gone = [{"queue": "gone", "type": "t", "payload": 0}] * JOBS
                    await near.post("/jobs/bulk", {"jobs": gone})
                    await near.post("/jobs/cancel?queue=gone", {})
                for start in range(0, JOBS, 20):
                    await far.post("/jobs/bulk", {"jobs": jobs[start : start + 20]})
                async with device.client() as near:
                    await near.post("/forward/out/resume", {})
                await asyncio.sleep(chance.uniform(0.0, 0.3))
        async with running(tmp_path / "device", *flags) as device, device.client() as near:

            async def is_done() -> bool:
                await near.post("/forward/out/resume", {})
                async with hub.client() as far:
                    left = await far.count(status="ready,in_flight")
                    records = (await far.get("/history", limit=10_000)).doc["max_seq"]
                return left == 0 and records >= KILLS * JOBS

            await until(is_done)
            assert await all_of(device, queue="commands") == list(range(KILLS * JOBS))
            async with hub.client() as far:
                at_hub = [
                    record["job_id"]
                    for record in (await far.get("/history", limit=10_000)).doc["records"]
                    if record["device"] == "d1"
                ]
            own = (await near.get("/history", limit=10_000)).doc["records"]
            assert at_hub == [record["job_id"] for record in own]
            assert len(set(at_hub)) == KILLS * JOBS


async def _knows(hub: Client) -> bool:
    reply = await hub.get("/devices/d1")
    return reply.status == 200
