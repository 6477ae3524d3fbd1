"""A site with keys: the keys, a request for each route, and clients with a key."""

from pathlib import Path
from typing import Any

from zq.http.api.description import reference
from zq.http.door import Route
from zq.model.keys import KeyScope, digest_of, make_key

from .client import Client, Wire, new_job
from .site import Site

ALL = ",".join(KeyScope)

# Name → scopes and queue prefixes. The secret of a key is its name, twice.
KEYS: dict[str, tuple[str, list[str]]] = {
    "root": (ALL, []),
    "shop": (ALL, ["shop-"]),
    "mall": (f"{ALL},budgets=2", ["shop-"]),
    **{f"only-{scope}": (scope, []) for scope in KeyScope},
    **{f"not-{scope}": (",".join(s for s in KeyScope if s != scope), []) for scope in KeyScope},
}


def secret(name: str) -> str:
    return name * 2


def write_keys(path: Path, *without: str) -> Path:
    """A key file of all `KEYS` but those named."""
    keys = [
        make_key(name, digest_of(secret(name).encode()), scopes, prefixes)
        for name, (scopes, prefixes) in KEYS.items()
        if name not in without
    ]
    path.write_text("".join(f"{key.line}\n" for key in keys))
    return path


def keys_in(directory: Path) -> Path:
    """A key file of all `KEYS`, as the setting `keys` of a site."""
    return write_keys(directory / "keys")


def client_of(site: Site, wire: Wire, name: str) -> Client:
    """A client that holds the key of this name."""
    return Client(site, wire, secret(name))


def declared_routes() -> dict[tuple[str, str], Route]:
    """Every route of the application by method and path."""
    return {(method, route.path): route for route in reference.routes() for method in route.methods}


POLICY: Any = {"allocation": 1, "strategy": {"type": "while_in_flight"}}
ENTRY = {"name": "e", "expression": "0 0 1 1 *", "job": new_job(queue="{queue}")}

# Method and path of every route → a body, of a job or about one in the queue `{queue}`.
# A route that is not listed here, or no longer there, fails the tests that walk.
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/jobs"): new_job(queue="{queue}"),
    ("POST", "/jobs/bulk"): {"jobs": [new_job(queue="{queue}")]},
    ("GET", "/jobs"): None,
    ("GET", "/jobs/count"): None,
    ("GET", "/jobs/take"): None,
    ("GET", "/metrics"): None,
    ("GET", "/events"): None,
    ("POST", "/jobs/{id}/progress"): {"data": 1},
    ("GET", "/stats"): None,
    ("GET", "/stats/history"): None,
    ("GET", "/stats/types"): None,
    ("POST", "/marks"): {"text": "1.8.2"},
    ("GET", "/scheduled"): None,
    ("GET", "/stuck"): None,
    ("GET", "/queues/{queue}/stats"): None,
    ("GET", "/queues/{queue}/why"): None,
    ("GET", "/queues/{queue}/backlog"): None,
    ("GET", "/backlog"): None,
    ("GET", "/queues"): None,
    ("PUT", "/queues/{queue}/targets/{target}"): None,
    ("DELETE", "/queues/{queue}/targets/{target}"): None,
    ("GET", "/queues/{queue}/groups"): None,
    ("GET", "/queues/{queue}/near"): None,
    ("GET", "/suggest"): None,
    ("GET", "/queues/schemas"): None,
    ("GET", "/queues/{queue}/schema"): None,
    ("PUT", "/queues/{queue}/schema"): {"schema": "string"},
    ("DELETE", "/queues/{queue}/schema"): None,
    ("POST", "/queues/{queue}/replay"): None,
    ("GET", "/cleaning"): None,
    ("PUT", "/cleaning"): {"schedule": "@daily"},
    ("POST", "/queues/{queue}/push"): {"n": 1},
    ("POST", "/queues/{queue}/push/{group}"): {"n": 1},
    ("POST", "/queues/{queue}/push/{group}/{dedupe}"): {"n": 1},
    ("GET", "/jobs/{id}"): None,
    ("GET", "/jobs/{id}/why"): None,
    ("PATCH", "/jobs"): {"priority": 1},
    ("PATCH", "/jobs/{id}"): {"priority": 1},
    ("DELETE", "/jobs"): None,
    ("DELETE", "/jobs/{id}"): None,
    ("POST", "/jobs/success"): {"ids": ["{id}"]},
    ("POST", "/jobs/{id}/success"): None,
    ("POST", "/jobs/{id}/failure"): {"message": "m"},
    ("POST", "/queues/{queue}/claim"): {"holder": "h", "max": 10},
    ("POST", "/jobs/extend"): {"items": [{"id": "{id}"}], "lease_ms": 60_000},
    ("POST", "/jobs/release"): {"items": [{"id": "{id}"}]},
    ("POST", "/jobs/{id}/extend"): {"lease_ms": 60_000},
    ("POST", "/jobs/{id}/release"): None,
    ("GET", "/workers"): None,
    ("GET", "/leases"): None,
    ("GET", "/failures"): None,
    ("POST", "/workers/{id}/drain"): None,
    ("DELETE", "/workers/{id}"): None,
    ("GET", "/keys"): None,
    ("GET", "/jobs/{id}/result"): None,
    ("GET", "/jobs/by-key"): None,
    ("POST", "/jobs/{id}/cancel"): {"force": True},
    ("POST", "/jobs/by-key/cancel"): {"force": True},
    ("POST", "/jobs/cancel"): {"force": True},
    ("PATCH", "/jobs/{id}/retention"): {"dead_ms": 1},
    ("POST", "/jobs/{id}/requeue"): None,
    ("POST", "/jobs/requeue"): None,
    ("POST", "/jobs/{id}/retry"): None,
    ("POST", "/jobs/redrive"): None,
    ("GET", "/queues/{queue}/settings"): None,
    ("PUT", "/queues/{queue}/settings"): {"paused": True},
    ("PATCH", "/queues/{queue}/settings"): {"paused": True},
    ("DELETE", "/queues/{queue}/settings"): None,
    ("GET", "/queues/settings"): None,
    ("GET", "/sweeps/preview"): None,
    ("GET", "/sweeps"): None,
    ("GET", "/sweeps/ended"): None,
    ("GET", "/sweeps/{id}"): None,
    ("POST", "/sweeps/{id}/undo"): None,
    ("DELETE", "/sweeps/{id}"): None,
    ("GET", "/jobs/{id}/errors"): None,
    ("GET", "/jobs/{id}/errors/{attempt}"): None,
    ("GET", "/history"): None,
    ("GET", "/audit"): None,
    ("GET", "/health"): None,
    ("GET", "/healthz"): None,
    ("GET", "/openapi.json"): None,
    ("GET", "/status"): None,
    ("GET", "/version"): None,
    ("POST", "/reset"): None,
    ("GET", "/budgets"): None,
    ("GET", "/budgets/{key}"): None,
    ("POST", "/budgets/{key}"): POLICY,
    ("PUT", "/budgets/{key}"): POLICY,
    ("PATCH", "/budgets/{key}"): {"allocation": 2},
    ("DELETE", "/budgets/{key}"): None,
    ("POST", "/budgets/{key}/hold"): {"for_ms": 1},
    ("DELETE", "/budgets/{key}/hold"): None,
    ("GET", "/queues/{queue}/fair"): None,
    ("GET", "/queues/{queue}/fair/{key}"): None,
    ("PUT", "/queues/{queue}/fair/{key}"): {"weight": 2},
    ("DELETE", "/queues/{queue}/fair/{key}"): None,
    ("PUT", "/jobs/{id}/budgets"): {"budgets": []},
    ("DELETE", "/jobs/{id}/budgets"): None,
    ("POST", "/jobs/{id}/budgets/{key}"): {"create_with": POLICY},
    ("PUT", "/jobs/{id}/budgets/{key}"): {"create_with": POLICY},
    ("PATCH", "/jobs/{id}/budgets/{key}"): {"cost": 1},
    ("DELETE", "/jobs/{id}/budgets/{key}"): None,
    ("DELETE", "/jobs/budgets"): None,
    ("POST", "/jobs/budgets/{key}"): {"create_with": POLICY},
    ("PUT", "/jobs/budgets/{key}"): {"create_with": POLICY},
    ("PATCH", "/jobs/budgets/{key}"): {"cost": 1},
    ("DELETE", "/jobs/budgets/{key}"): None,
    ("GET", "/producers"): None,
    ("GET", "/producers/{name}"): None,
    ("DELETE", "/producers/{name}"): None,
    ("GET", "/forward"): None,
    ("GET", "/forward/{name}"): None,
    ("PUT", "/forward/{name}"): {"queues": ["out*"], "url": "http://127.0.0.1:9"},
    ("DELETE", "/forward/{name}"): None,
    ("POST", "/forward/{name}/pause"): None,
    ("POST", "/forward/{name}/resume"): {},
    ("GET", "/devices"): None,
    ("GET", "/devices/{name}"): None,
    ("PUT", "/devices/{name}"): {"instance": "i", "version": "1", "now": 0},
    ("DELETE", "/devices/{name}"): None,
    ("POST", "/devices/{name}/fetch"): {"instance": "i"},
    ("POST", "/devices/{name}/history"): {"instance": "i"},
    ("POST", "/devices/jobs"): {"to": "d*", "job": new_job(queue="{queue}")},
    ("GET", "/devices/jobs/{group}"): None,
    ("GET", "/crons"): None,
    ("DELETE", "/crons"): None,
    ("GET", "/crons/{group}"): None,
    ("PUT", "/crons/{group}"): {"entries": [ENTRY]},
    ("PATCH", "/crons/{group}"): {"paused": True},
    ("DELETE", "/crons/{group}"): None,
    ("POST", "/crons/{group}/entries"): ENTRY,
    ("GET", "/crons/{group}/entries/{entry}"): None,
    ("PUT", "/crons/{group}/entries/{entry}"): ENTRY,
    ("PATCH", "/crons/{group}/entries/{entry}"): {"paused": True},
    ("DELETE", "/crons/{group}/entries/{entry}"): None,
}

OWNED = "owned"
"""The unique key of a job that there is, or is not."""


def walk() -> list[tuple[str, str]]:
    """Every route with its body's place in `BODIES`, HEAD included."""
    routes = declared_routes()
    bare = {(("GET" if method == "HEAD" else method), path) for method, path in routes}
    assert bare == BODIES.keys()
    return sorted(routes)


def request_to(
    wire: Wire, method: str, path: str, *, queue: str, id: str
) -> tuple[str, str, bytes | None, dict[str, str]]:
    """Method, target, body and headers of a request to a route."""
    doc = BODIES["GET" if method == "HEAD" else method, path]
    target = (
        path.replace("{queue}", queue)
        .replace("{target}", f"{queue}-target")
        .replace("{id}", id)
        .replace("{attempt}", "1")
        .replace("{group}", "g")
        .replace("{dedupe}", "d")
        .replace("{entry}", "e")
        .replace("{rest...}", "nightly")
    )
    if path.startswith("/jobs/by-key"):
        target += f"?key={OWNED}"
    if path == "/suggest":
        target += "?field=queue"
    headers = {} if doc is None else {"content-type": wire.media_type}
    body = None if doc is None else wire.encode(_filled(doc, {"{queue}": queue, "{id}": id}))
    return ("GET" if method == "*" else method), target, body, headers


def _filled(doc: Any, values: dict[str, str]) -> Any:
    if isinstance(doc, dict):
        return {name: _filled(value, values) for name, value in doc.items()}
    if isinstance(doc, list):
        return [_filled(value, values) for value in doc]
    return values.get(doc, doc) if isinstance(doc, str) else doc
