"""queue-ti's own client for Python works with this server over gRPC, with a key for its token."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conformance.client import JSON
from conformance.keyed import client_of, secret, write_keys
from conformance.site import Site
from conformance.streams import PATIENCE_S
from documents import code
from doors.queue_ti.messages import Messages

PROGRAM = Path(__file__).parent / "queue_ti_python.py"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path / "data", {"grpc_port": 0, "keys": write_keys(tmp_path / "keys")})
    await site.start()
    yield site
    await site.stop()


async def said(*command: str | Path) -> str:
    """What a Python program says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


async def test_it_publishes_consumes_acknowledges_and_refuses(site: Site) -> None:
    address = f"localhost:{site.server.ports['grpc']}"
    found = json.loads(await said(PROGRAM, address, secret("root")))
    good, bad = found["ids"]
    assert sorted(found["seen"]) == sorted(
        [[good, "ok", 0, {"n": "1"}], [bad, "bad", 0, {"n": "1"}], [bad, "bad", 1, {"n": "1"}]]
    )
    async with client_of(site, JSON, "root") as client:
        api = Messages(client)
        assert await api.list("work") == [], "both are acknowledged, the second after its failure"
        nacked = await api.one("batches")
        assert (nacked["retry_count"], nacked["last_error"]) == (1, "later")


async def test_the_program_of_the_documents_runs(site: Site) -> None:
    text = code("queue-ti grpc").replace("SECRET", secret("root"))
    assert await said("-c", text.replace("50051", str(site.server.ports["grpc"]))) == "a book\n"
