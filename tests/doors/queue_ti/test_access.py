"""Every route of queue-ti's door with every kind of caller."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from conformance.client import Client, Wire
from conformance.site import Site

from zq.config import Settings
from zq.doors.queue_ti.opening import QueueTiDoors
from zq.http.api.parts import no_server

from .users import Caller, admin_of, auth_settings, basic

TOPIC = "orders.new"

GRANTS: dict[str, tuple[tuple[str, str], ...]] = {
    "reader": (("read", "orders.*"),),
    "writer": (("write", "orders.*"),),
    "consumer": (("consume:g", "orders.*"),),
    "grantee": (("admin", "*"),),
    "stranger": (("read", "orders"), ("write", "orders"), ("consume:g", "orders")),
}

ALLOWED: dict[str, set[str]] = {
    "anybody": {*GRANTS, "admin", "basic"},
    "read": {"reader", "admin", "basic"},
    "write": {"writer", "admin", "basic"},
    "consume": {"writer", "consumer", "admin", "basic"},
    "admin": {"admin", "basic"},
}
"""Who may do what needs this."""

NEEDS: dict[tuple[str, str], tuple[str, Any]] = {
    ("GET", "/api/version"): ("nothing", None),
    ("GET", "/api/openapi.json"): ("nothing", None),
    ("GET", "/api/auth/status"): ("nothing", None),
    ("POST", "/api/auth/login"): ("nothing", {}),
    ("POST", "/api/auth/refresh"): ("anybody", None),
    ("POST", "/api/messages"): ("write", {"topic": TOPIC, "payload": "x"}),
    ("GET", "/api/messages"): ("read", None),
    ("POST", "/api/messages/dequeue"): ("consume", {"topic": TOPIC}),
    ("POST", "/api/messages/{id}/ack"): ("consume", {}),
    ("POST", "/api/messages/{id}/nack"): ("consume", {}),
    ("POST", "/api/messages/{id}/requeue"): ("write", None),
}
"""What a route needs, and a body. Every other route is for administrators."""


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return auth_settings(tmp_path)


@pytest.fixture
async def callers(site: Site, wire: Wire) -> AsyncIterator[dict[str, Caller]]:
    async with Client(site, wire) as client:
        admin = await admin_of(client)
        nobody = Caller(client)
        callers = {"nobody": nobody, "impostor": Caller(client, "Bearer x"), "admin": admin}
        callers["basic"] = Caller(client, basic("admin", "secret"))
        for name, grants in GRANTS.items():
            await admin.make(name, *grants)
            callers[name] = await nobody.login(name)
        yield callers


async def routes_of(site: Site) -> list[tuple[str, str]]:
    """Every route of the door, as it is where there are users."""
    opened = QueueTiDoors(Settings.of(queue_ti_auth=True, doors=("queue-ti",)))
    opened.prepare()
    await opened.start(replace(no_server(), services=site.server.services), cast(Any, None))
    (later,) = opened.later("primary", cast(Any, None))
    (door,) = later.make()
    paths = [(route.method, door.prefix + route.path) for route in door.routes]
    return [(method, path) for method, path in paths if not path.endswith("/")]


async def test_each_route_is_for_those_who_may_use_it(
    site: Site, callers: dict[str, Caller]
) -> None:
    routes = await routes_of(site)
    assert NEEDS.keys() <= set(routes)
    admin, seen, wanted = callers["admin"], {}, {}
    message = {"topic": TOPIC, "payload": "x"}
    for method, path in routes:
        need, body = NEEDS.get((method, path), ("admin", {} if method in ("POST", "PUT") else None))
        for name, caller in callers.items():
            id = "none"
            if "/messages/{id}" in path:
                id = (await admin.send("POST", "/messages", message)).doc["id"]
            target = path.removeprefix("/api").replace("{id}", id).replace("{topic}", TOPIC)
            if (method, path) == ("GET", "/api/messages"):
                target += f"?topic={TOPIC}"
            # Every name in a path that is left stands for nothing that there is.
            target = target.replace("{", "").replace("}", "")
            for end in ("", "/"):
                place, _, query = target.partition("?")
                reply = await caller.send(
                    method, place + end + (f"?{query}" if query else ""), body
                )
                place = f"{method} {path}{end} {name}"
                seen[place] = {401: "who?", 403: "no"}.get(reply.status, "yes")
                assert reply.status < 500, (place, reply.body)
            known = name not in ("nobody", "impostor")
            answer = "yes" if need == "nothing" or name in ALLOWED.get(need, ()) else "no"
            for end in ("", "/"):
                place = f"{method} {path}{end} {name}"
                wanted[place] = answer if known or need == "nothing" else "who?"
    assert seen == wanted


async def test_lists_of_all_topics_and_groups_need_grants_of_their_own(
    callers: dict[str, Caller],
) -> None:
    assert (await callers["reader"].send("GET", "/messages")).status == 403
    assert (await callers["admin"].send("GET", "/messages")).status == 200
    wanted = {"topic": TOPIC, "consumer_group": "other"}
    for name, allowed in (("consumer", False), ("writer", True), ("admin", True)):
        reply = await callers[name].send("POST", "/messages/dequeue", wanted)
        assert (reply.status != 403) is allowed, name
