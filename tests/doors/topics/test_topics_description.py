"""The door of topics keeps to its description: schemathesis draws requests, and judges answers."""

from pathlib import Path
from typing import Any

from process.judge import Drawn, judged
from process.server import running

from zq.doors.topics.http.description import OPERATIONS, TOPICS
from zq.doors.topics.http.door import topics_routes
from zq.http.api.parts import no_server
from zq.http.json_description import json_openapi

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


def routes() -> Any:
    return topics_routes(no_server(), 0.0)


def test_every_route_is_described() -> None:
    assert {(route.method, route.path) for route in routes()} == OPERATIONS.keys()
    paths = json_openapi(TOPICS, routes())["paths"]
    names = [each["operationId"] for item in paths.values() for each in item.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


async def test_the_door_keeps_to_its_description(tmp_path: Path) -> None:
    drawn = Drawn("/v0/openapi.json", "doors.topics.hooks", LEFT_OUT, EXAMPLES)
    async with running(tmp_path / "data") as server:
        assert await judged(server, drawn, tmp_path) == len(OPERATIONS)
