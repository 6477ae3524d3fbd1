"""A key with a prefix names no queue beyond it: in no body of no door, whatever the field."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, Client, Wire, new_job
from conformance.keyed import ALL, client_of, secret, write_keys
from conformance.site import Site

from zq.model.keys import digest_of, make_key

Doc = dict[str, Any]

OTHER, OWN = "other", "shop-dead"
NAMED = "{named}"
"""Stands in a body for the queue that is named there."""

FIELDS = {"queue", "dead_letter", "fan_out", "topic", "topics", "source", "dest", "target"}
"""The names of all fields that hold names of queues."""

JOB = new_job(queue="shop-a")
NAMING_JOBS = [{**JOB, "queue": NAMED}, {**JOB, "dead_letter": NAMED}]
ENTRY = {"name": "e", "expression": "0 0 1 1 *"}
RECORD = {"records": [{"data": 1}]}

# Method and path → bodies, each of which names a queue in one field.
BODIES: dict[tuple[str, str], list[Doc]] = {
    ("POST", "/jobs"): NAMING_JOBS,
    ("POST", "/jobs/bulk"): [{"jobs": [JOB, job]} for job in NAMING_JOBS],
    ("PATCH", "/jobs"): [{"queue": NAMED}],
    ("PATCH", "/jobs/{id}"): [{"queue": NAMED}],
    ("PUT", "/queues/{queue}/settings"): [{"dead_letter": NAMED}, {"fan_out": [NAMED]}],
    ("PATCH", "/queues/{queue}/settings"): [{"dead_letter": NAMED}, {"fan_out": [NAMED]}],
    ("PUT", "/crons/{group}"): [{"entries": [{**ENTRY, "job": job}]} for job in NAMING_JOBS],
    ("POST", "/crons/{group}/entries"): [{**ENTRY, "job": job} for job in NAMING_JOBS],
    ("PUT", "/crons/{group}/entries/{entry}"): [{**ENTRY, "job": job} for job in NAMING_JOBS],
    ("PUT", "/v0/topics/{topic}"): [{"dead_letter": NAMED}],
    ("POST", "/v0/topics/{topic}"): [{**RECORD, "config": {"dead_letter": NAMED}}],
    ("PUT", "/v0/routers/{router}"): [
        {"source": NAMED, "dest": "shop-x"},
        {"source": "shop-x", "dest": NAMED},
    ],
    ("POST", "/v0/watch"): [{"topics": {NAMED: {}}}],
    ("POST", "/api/messages"): [{"topic": NAMED, "payload": "x"}],
    ("POST", "/api/messages/dequeue"): [{"topic": NAMED}, {"topic": f"{NAMED}.dlq"}],
}
# These name queues of a device, `to/device-17/…`, beyond the prefix whatever their names there are.
ADDRESSED: dict[tuple[str, str], list[Doc]] = {
    ("POST", "/devices/jobs"): [{"to": "device-17", "job": job} for job in NAMING_JOBS],
}
# These take what a device did in any of its queues, and keep what is within the prefix:
# tests/conformance/test_device_history.py.
SIFTED: dict[tuple[str, str], list[Doc]] = {
    ("POST", "/devices/{name}/history"): [{"records": [{"queue": NAMED}]}],
}
# The path names the second queue of these.
PATHS = [
    ("PUT", "/queues/{queue}/targets/" + NAMED),
    ("DELETE", "/queues/{queue}/targets/" + NAMED),
]


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """The usual keys and one with more prefixes, and the page."""
    file = write_keys(tmp_path / "keys")
    shops = make_key("shops", digest_of(secret("shops").encode()), ALL, ["mall-", "shop-"])
    file.write_text(f"{file.read_text()}{shops.line}\n")
    return {"keys": file, "ui": "primary"}


def named(value: Any, queue: str) -> Any:
    """A body that names a queue."""
    if isinstance(value, dict):
        return {named(key, queue): named(each, queue) for key, each in value.items()}
    if isinstance(value, list):
        return [named(each, queue) for each in value]
    return value.replace(NAMED, queue) if isinstance(value, str) else value


class Sender:
    """Whoever has a prefix: a client with a key, or the page in a session of that key."""

    def __init__(self, client: Client, base: str = "") -> None:
        """The paths of the client's requests begin with `base`."""
        self._client = client
        self._base = base

    async def status(self, method: str, path: str, body: Doc | None, queue: str, n: int) -> int:
        """The status of a request that names a queue, and whose path is of the key's own."""
        job = (await self._client.post(f"{self._base}/jobs", new_job(queue=f"shop-{n}"))).doc
        target = self._base + named(path, queue)
        for field, value in (("id", job["id"]), ("entry", "e")):
            target = target.replace(f"{{{field}}}", value)
        for field in ("queue", "group", "topic", "router"):
            target = target.replace(f"{{{field}}}", f"shop-{field}-{n}")
        if body is None:
            return (await self._client.send(method, target)).status
        return (await self._client.call(method, target, named(body, queue))).status

    async def names_no_other(self, tried: Mapping[tuple[str, str], list[Doc]]) -> None:
        """Every field of these requests names a queue of the key, and no other."""
        requests: list[tuple[str, str, Doc | None]] = [
            (method, path, body) for (method, path), bodies in tried.items() for body in bodies
        ]
        requests += [(method, path, None) for method, path in PATHS]
        for n, (method, path, body) in enumerate(requests):
            assert await self.status(method, path, body, OTHER, n) == 403, (method, path, body)
            own = f"shop-own-{n}" if "fan_out" in (body or {}) or body is None else OWN
            # It is the name that was wrong.
            assert await self.status(method, path, body, own, n) != 403, (method, path, body)
        for (method, path), bodies in ADDRESSED.items():
            for body in bodies:
                assert await self.status(method, path, body, OTHER, 0) == 403, (method, path, body)
                assert await self.status(method, path, body, OWN, 0) == 403, (method, path, body)


@asynccontextmanager
async def others(site: Site, wire: Wire) -> AsyncIterator[None]:
    """After this, the other queue is as unknown as before."""
    async with client_of(site, wire, "root") as root:
        await root.call("PUT", "/v0/topics/shop-dead", {})
        yield
        assert await root.count(queue=OTHER) == 0
        assert (await root.get(f"/v0/topics/{OTHER}")).status == 404


@pytest.mark.parametrize("name", ["shop", "shops"])
async def test_no_field_of_no_door_names_a_queue_beyond_the_prefix(
    site: Site, wire: Wire, name: str
) -> None:
    async with others(site, wire), client_of(site, wire, name) as client:
        await Sender(client).names_no_other(BODIES)


async def test_the_page_names_no_queue_beyond_the_prefix_of_its_session(site: Site) -> None:
    async with others(site, JSON), Client(site, JSON) as page:
        signed_in = await page.post("/ui/session", {"key": secret("shop")})
        cookie = signed_in.headers["set-cookie"].partition(";")[0]
        page.always = {"cookie": cookie, "zq-session": signed_in.doc["token"]}
        # The page changes many jobs only as a preview before has counted them.
        offered = {
            (method, path): bodies
            for (method, path), bodies in BODIES.items()
            if not path.startswith(("/v0", "/api")) and (method, path) != ("PATCH", "/jobs")
        }
        await Sender(page, "/ui/api").names_no_other(offered)


async def test_every_field_that_names_a_queue_is_tried(site: Site, wire: Wire) -> None:
    async with client_of(site, wire, "root") as root:
        for prefix in ("", "/v0", "/api"):
            described = (await root.get(f"{prefix}/openapi.json")).doc
            for path, methods in described["paths"].items():
                for method, operation in methods.items():
                    tried = (BODIES | ADDRESSED | SIFTED).get((method.upper(), path), [])
                    fields = {field for body in tried for field in naming(body)}
                    assert naming_fields(operation, described) <= fields, (method, path)


def naming(body: Any) -> Iterator[str]:
    """The fields of a body that hold the name."""
    if isinstance(body, list):
        for each in body:
            yield from naming(each)
    elif isinstance(body, dict):
        for field, value in body.items():
            if value in (NAMED, [NAMED], {NAMED: {}}):
                yield field
            yield from naming(value)


def naming_fields(operation: Doc, described: Doc) -> set[str]:
    """The fields of a request's body, nested ones too, that hold names of queues."""
    found: set[str] = set()
    seen: list[str] = []
    waiting: list[Any] = [
        content.get("schema")
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, list):
            waiting += schema
        elif isinstance(schema, dict):
            if (ref := schema.get("$ref")) and ref not in seen:
                seen.append(ref)
                waiting.append(described["components"]["schemas"][ref.rpartition("/")[2]])
            found |= FIELDS & schema.get("properties", {}).keys()
            waiting += schema.values()
    return found
