"""The server matches its description: schemathesis draws requests from it, and judges answers."""

import asyncio
import itertools
import os
import re
import sys
from pathlib import Path

from conformance.client import Reply

from zq.http.zizq.description.operations import OPERATIONS

from .schemathesis_hooks import FRAMINGS, STREAMS
from .server import running

LEFT_OUT = (
    # Rules of texts (jq programs, printable names) that no JSON schema says.
    "positive_data_acceptance",
    # There are no keys here; tests/process/test_access.py has some.
    "ignored_auth",
    "object_level_authorization",
    # Takes every request by id for one that a new job answers; an acknowledgement is 404 until the
    # job is in flight.
    "ensure_resource_availability",
)
"""Every other check of schemathesis is made, of every operation, in every phase."""

EXAMPLES = 4
"""Requests for each operation beside those that go through its values in turn, and scenarios."""

PATIENCE_S = 600


async def test_the_server_keeps_to_its_description(tmp_path: Path) -> None:
    read = tmp_path / "streams"
    async with running(tmp_path / "data") as server, server.client() as client:
        # From a file: schemathesis would leave out the operation that it has the document from.
        document = tmp_path / "openapi.json"
        _write(document, await client.get("/openapi.json"))
        run = await asyncio.create_subprocess_exec(
            *(str(Path(sys.executable).with_name("schemathesis")), "run", str(document)),
            *("--url", f"http://127.0.0.1:{server.port}"),
            *("--checks", "all", "--exclude-checks", ",".join(LEFT_OUT)),
            *("--phases", "coverage,fuzzing,stateful", "--max-examples", str(EXAMPLES)),
            *("--generation-deterministic", "--no-color", "--warnings", "off"),
            cwd=tmp_path,
            env=os.environ
            | {
                "NO_PROXY": "*",
                "SCHEMATHESIS_HOOKS": "process.schemathesis_hooks",
                "PYTHONPATH": str(Path(__file__).parents[1]),
                "STREAMS_READ": str(read),
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE_S):
            said = (await run.communicate())[0].decode()

    assert run.returncode == 0, said
    tested = re.search(r"Tested: (\d+)", said)
    assert tested, said
    assert int(tested[1]) == len(OPERATIONS)
    assert "errored" not in said, said
    expected = {f"{path} {framing}" for path, framing in itertools.product(STREAMS, FRAMINGS)}
    assert set(read.read_text().splitlines()) == expected


def _write(file: Path, reply: Reply) -> None:
    assert reply.status == 200
    file.write_bytes(reply.body)
