"""A server with less memory than its bodies need refuses them, and goes on."""

import asyncio
import json
import resource
from pathlib import Path

import httpx
import pytest

from .server import ServerProcess, running

MIB = 1024 * 1024

JSON = {"content-type": "application/json"}


def leave(server: ServerProcess, more: int) -> None:
    """Let a server have only so many bytes of address space beside what it has."""
    pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, limit))


def large(kind: str) -> tuple[str, bytes]:
    """A valid request with a body of about 30 MB."""
    if kind == "bulk":
        jobs = [{"queue": "q", "type": "t", "payload": "x" * 10_000}] * 3_000
        return "/jobs/bulk", json.dumps({"jobs": jobs}).encode()
    values = b",".join([b"1234567.5"] * 3_000_000)
    return "/jobs", b'{"queue": "q", "type": "t", "payload": 1, "unknown": [%s]}' % values


@pytest.mark.parametrize("kind", ["bulk", "values"])
@pytest.mark.parametrize("more", [20 * MIB, 80 * MIB])
async def test_large_bodies_without_memory_are_refused_and_the_server_goes_on(
    tmp_path: Path, kind: str, more: int
) -> None:
    async with (
        running(tmp_path) as server,
        httpx.AsyncClient(base_url=f"http://localhost:{server.port}", timeout=60) as client,
    ):
        small = {"queue": "q", "type": "t", "payload": 1}
        assert (await client.post("/jobs", json=small)).status_code == 201
        leave(server, more)
        path, body = large(kind)
        answers = await asyncio.gather(
            *[client.post(path, content=body, headers=JSON) for _ in range(4)],
            return_exceptions=True,
        )
        assert (await client.post("/jobs", json=small)).status_code == 201
    told = [answer.status_code for answer in answers if isinstance(answer, httpx.Response)]
    assert set(told) <= {201, 413, 503}, told
    # What a request asks memory for is refused. But the event loop cuts a connection whose bytes
    # it has no memory to hand over, and says so.
    failed = [line for line in server.log if "traceback" in line["fields"]]
    assert {(line["target"], line["fields"]["error"]) for line in failed} <= {
        ("asyncio", "MemoryError")
    }, failed
    cut = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(each, httpx.NetworkError | httpx.RemoteProtocolError) for each in cut)
    assert len(cut) <= len(failed), (cut, server.raw_log)
