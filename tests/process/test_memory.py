"""What the server holds in memory does not grow with what went through it, or waits in it.

`MEMORY_JOBS` and `MEMORY_SECONDS` make these runs as long as they are wanted: a million jobs and 50
seconds, say. What they bound does not grow with that.
"""

import asyncio
import os
import time
from pathlib import Path

from conformance.client import Client, new_job
from conformance.raw import RawConnection

from .server import ServerProcess, running

MIB = 1024 * 1024

SMALL_CACHE = ("--cache-size", "1MiB")
"""Pages of the database would fill memory up to a bound of their own, and hide the rest."""


def resident(server: ServerProcess) -> float:
    """Memory that the server has now, in MiB."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


async def test_payloads_that_are_gone_take_no_memory(tmp_path: Path) -> None:
    async with running(tmp_path, *SMALL_CACHE) as server, server.client() as client:
        payload = "x" * 200_000

        async def bulk(count: int) -> None:
            jobs = [new_job(payload=payload)] * count
            assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201
            await client.delete("/jobs")

        await bulk(40)
        before = resident(server)
        # As many jobs a transaction as there are statements that insert them.
        for count in range(1, 41):
            await bulk(count)
        assert resident(server) < before + 40
