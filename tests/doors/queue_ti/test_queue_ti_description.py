"""The door of messages keeps to its description: requests are drawn from it, and answers judged."""

from pathlib import Path
from typing import Any

import pytest
from process.judge import Drawn, judged
from process.server import running

from zq.doors.queue_ti.http.access import Access
from zq.doors.queue_ti.http.calls import MessageCalls
from zq.doors.queue_ti.http.description import OPERATIONS, QUEUE_TI
from zq.doors.queue_ti.http.door import queue_ti_routes
from zq.doors.queue_ti.http.users import DoorAuth
from zq.http.api.parts import no_server
from zq.http.json_description import json_openapi

LEFT_OUT = (
    # Rules of names, schedules and schemas that no JSON schema says.
    "positive_data_acceptance",
    # Numbers of a query that are none are the usual ones, as in the original.
    "negative_data_rejection",
    # There are no keys here; test_access.py and test_keys.py have some.
    "ignored_auth",
    "object_level_authorization",
    # Takes every request by a name for one that a new topic answers.
    "ensure_resource_availability",
)
EXAMPLES = 1


def routes(*, users: bool) -> Any:
    nobody: Any = None
    calls = MessageCalls(no_server().services, nobody, nobody, 0)
    auth = DoorAuth(Access(nobody, nobody, nobody), nobody) if users else None
    every = queue_ti_routes(no_server(), calls, nobody, auth)
    return [route for route in every if not route.path.endswith("/")]


@pytest.mark.parametrize("users", [True, False])
def test_every_route_is_described(users: bool) -> None:
    served = {(route.method, route.path) for route in routes(users=users)}
    about_users = {
        (method, path)
        for method, path in OPERATIONS
        if path.startswith(("/users", "/auth/")) and path != "/auth/status"
    }
    assert served == OPERATIONS.keys() - (set() if users else about_users)
    paths = json_openapi(QUEUE_TI, routes(users=users))["paths"]
    described = [each for item in paths.values() for each in item.values()]
    assert len({each["operationId"] for each in described}) == len(described) == len(served)
    assert all(each["summary"] for each in described)


async def test_the_door_keeps_to_its_description(tmp_path: Path) -> None:
    drawn = Drawn("/api/openapi.json", "doors.queue_ti.no_hooks", LEFT_OUT, EXAMPLES)
    async with running(tmp_path / "data") as server:
        assert await judged(server, drawn, tmp_path) == len(routes(users=False))
