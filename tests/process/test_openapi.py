"""The server keeps to its description: schemathesis draws requests from it, and judges answers."""

import asyncio
import os
import re
import sys
from pathlib import Path

from zq.http.description.operations import OPERATIONS

from .server import running

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
STREAMS = ("/jobs/take", "/events")
"""They have no end, and tests of their own."""

OTHERS = {
    "/metrics": "no document, but the format of another project",
    "/openapi.json": "schemathesis leaves the description itself out",
}
EXAMPLES = 4
PATIENCE_S = 600


async def test_the_server_keeps_to_its_description(tmp_path: Path) -> None:
    left_out = [*STREAMS, *OTHERS]
    async with running(tmp_path / "data") as server:
        run = await asyncio.create_subprocess_exec(
            *(str(Path(sys.executable).with_name("schemathesis")), "run"),
            f"http://127.0.0.1:{server.port}/openapi.json",
            *("--checks", ",".join(CHECKS)),
            *(word for path in left_out for word in ("--exclude-path", path)),
            *("--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES)),
            *("--generation-deterministic", "--no-color", "--warnings", "off"),
            cwd=tmp_path,
            env=os.environ
            | {
                "NO_PROXY": "*",
                "SCHEMATHESIS_HOOKS": "process.schemathesis_hooks",
                "PYTHONPATH": str(Path(__file__).parents[1]),
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE_S):
            said = (await run.communicate())[0].decode()

    assert run.returncode == 0, said
    tested = re.search(r"Tested: (\d+)", said)
    assert tested, said
    assert int(tested[1]) == len(OPERATIONS) - len(left_out)
    assert "errored" not in said, said
