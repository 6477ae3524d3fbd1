"""A server whose log goes into a pipe that nobody reads."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from conformance.client import JSON, Client

from .server import SCRIPT, RemoteSite, clean_environment

REQUESTS = 800
"""So many lines of the access log are more than a pipe holds."""


@contextlib.contextmanager
def unread(root: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server that logs each request, and its port. Its log is read up to that, and no further."""
    flags = ("--access-log", "all", "--root-dir", str(root))
    with subprocess.Popen(
        [sys.executable, "-m", "zq.cli", *SCRIPT, *flags],
        stdout=subprocess.PIPE,
        bufsize=0,
        env=clean_environment(),
    ) as process:
        try:
            assert process.stdout is not None
            while True:
                fields = json.loads(process.stdout.readline())["fields"]
                if "addr" in fields:
                    break
            yield process, int(fields["addr"].rpartition(":")[2])
        finally:
            process.kill()


async def test_a_log_that_nobody_reads_stops_neither_answers_nor_the_end(tmp_path: Path) -> None:
    with unread(tmp_path) as (process, port):
        async with Client(RemoteSite(port), JSON) as client, asyncio.timeout(120):
            for _ in range(REQUESTS):
                assert (await client.send("GET", "/version")).status == 200
            job = await client.enqueue()
        process.terminate()
        assert await asyncio.to_thread(process.wait, 60) == 0
    with unread(tmp_path) as (_, port):
        async with Client(RemoteSite(port), JSON) as client:
            assert [each["id"] for each in await client.jobs()] == [job["id"]]
