"""Has schemathesis draw requests from a description, and judge what a server answers."""

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .server import ServerProcess

TESTS = Path(__file__).parents[1]
PATIENCE_S = 600


class Drawn(NamedTuple):
    """What is drawn: from which document, with which hooks, and which checks are not made.

    `examples` are requests for each operation beside those that go through its values in turn.
    """

    document: str
    hooks: str
    left_out: Sequence[str]
    examples: int
    phases: str = "coverage,fuzzing"


async def judged(
    server: ServerProcess, drawn: Drawn, place: Path, environment: Mapping[str, str] = os.environ
) -> int:
    """How many operations were tested. Fails with what schemathesis says of a fault."""
    # From a file: schemathesis would leave out the operation that it has the document from.
    document = place / "openapi.json"
    async with server.client() as client:
        reply = await client.get(drawn.document)
        assert reply.status == 200
        document.write_bytes(reply.body)
    run = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), "run", str(document)),
        *("--url", f"http://127.0.0.1:{server.port}"),
        *("--checks", "all", "--exclude-checks", ",".join(drawn.left_out)),
        *("--phases", drawn.phases, "--max-examples", str(drawn.examples)),
        *("--generation-deterministic", "--no-color", "--warnings", "off"),
        cwd=place,
        env={
            **environment,
            "NO_PROXY": "*",
            "SCHEMATHESIS_HOOKS": drawn.hooks,
            "PYTHONPATH": str(TESTS),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S):
        said = (await run.communicate())[0].decode()
    assert run.returncode == 0, said
    tested = re.search(r"Tested: (\d+)", said)
    assert tested, said
    assert "errored" not in said, said
    return int(tested[1])
