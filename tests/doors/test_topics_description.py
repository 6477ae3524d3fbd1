"""The door of topics keeps to its description: schemathesis draws requests, and judges answers."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

from process.server import running

from zq.engine.news.viewers import Viewers
from zq.http.topics.description.openapi import topics_openapi
from zq.http.topics.description.operations import OPERATIONS
from zq.http.topics.door import topics_routes
from zq.model.clock import ManualClock
from zq.service import Services

LEFT_OUT = (
    # Rules of names and tags that no JSON schema says.
    "positive_data_acceptance",
    # There are no keys here; test_topic_keys.py has some.
    "ignored_auth",
    "object_level_authorization",
    # Takes every request by a name for one that a new topic answers.
    "ensure_resource_availability",
)
EXAMPLES = 1
PATIENCE_S = 300


def routes() -> Any:
    nobody: Any = None
    clock = ManualClock()
    services = Services(*[nobody] * len(Services._fields))
    services = services._replace(clock=clock, viewers=Viewers(nobody, clock))
    return topics_routes(services, *[nobody] * 5)


def test_every_route_is_described() -> None:
    assert {(route.method, route.path) for route in routes()} == OPERATIONS.keys()
    paths = topics_openapi(routes())["paths"]
    names = [each["operationId"] for item in paths.values() for each in item.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


async def test_the_door_keeps_to_its_description(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server, server.client() as client:
        document = tmp_path / "openapi.json"
        reply = await client.get("/v0/openapi.json")
        assert reply.status == 200
        document.write_bytes(reply.body)
        run = await asyncio.create_subprocess_exec(
            *(str(Path(sys.executable).with_name("schemathesis")), "run", str(document)),
            *("--url", f"http://127.0.0.1:{server.port}"),
            *("--checks", "all", "--exclude-checks", ",".join(LEFT_OUT)),
            *("--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES)),
            *("--generation-deterministic", "--no-color", "--warnings", "off"),
            cwd=tmp_path,
            env=os.environ
            | {
                "NO_PROXY": "*",
                "SCHEMATHESIS_HOOKS": "doors.topic_hooks",
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
    assert int(tested[1]) == len(OPERATIONS)
    assert "errored" not in said, said
