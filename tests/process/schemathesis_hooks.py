"""What schemathesis needs to know to test zq: MessagePack, jobs that exist, and no patience."""

import json
import urllib.request
from typing import Any

import msgpack
import schemathesis

from zq.model.outcome import MOST_WAIT_MS

HUGE = 1e300
"""Stands in for numbers that MessagePack has no room for."""


@schemathesis.serializer("application/msgpack")
def pack(_context: Any, value: Any) -> Any:
    return msgpack.packb(value, default=lambda _: HUGE)


@schemathesis.deserializer("application/msgpack")
def unpack(_context: Any, response: Any) -> Any:
    return msgpack.unpackb(response.content)


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Wait for nothing; and ask about a job that there is, where an id is drawn as one would."""
    query = case.query or {}
    if _is_wait(query.get("wait_ms")):
        query["wait_ms"] = "1"
    if isinstance(case.body, dict) and _is_wait(case.body.get("wait_ms")):
        case.body["wait_ms"] = 1
    parameters = case.path_parameters or {}
    if case.path.startswith("/jobs/{id}") and len(str(parameters["id"])) > 1:
        parameters["id"] = _new_job(case.operation.schema.get_base_url())


def _is_wait(value: Any) -> bool:
    return str(value).isdigit() and int(value) <= MOST_WAIT_MS


def _new_job(url: str) -> str:
    job = {"queue": "q", "type": "t", "payload": 1, "unique_key": "k", "unique_while": "active"}
    request = urllib.request.Request(
        f"{url.rstrip('/')}/jobs", json.dumps(job).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        id: str = json.load(response)["id"]
    return id
