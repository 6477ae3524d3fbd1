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
    wait_ms = str(query.get("wait_ms"))
    if wait_ms.isdigit() and int(wait_ms) <= MOST_WAIT_MS:
        query["wait_ms"] = "1"
    parameters = case.path_parameters or {}
    if "id" in parameters and len(str(parameters["id"])) > 1:
        parameters["id"] = _new_job(case.operation.schema.get_base_url())


def _new_job(url: str) -> str:
    job = {"queue": "q", "type": "t", "payload": 1, "unique_key": "k", "unique_while": "active"}
    request = urllib.request.Request(
        f"{url.rstrip('/')}/jobs", json.dumps(job).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        id: str = json.load(response)["id"]
    return id
