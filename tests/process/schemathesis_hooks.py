"""The hooks by which schemathesis tests zq: MessagePack, existing jobs, and short waits.

A stream has no end: its reader hangs up when it has been quiet for a moment. The file named by
`STREAMS_READ` gets a line for each stream of which a document was read: its path and media type.
`ONE_IN` says how many of the values are tried that other operations have as well, and
`ONE_TYPE_IN` how many of the wrong types of a value.
"""

import itertools
import json
import os
import urllib.parse
from pathlib import Path
from typing import Any

import msgpack
import requests
import schemathesis
import urllib3
from schemathesis.generation.meta import CoverageScenario, TestPhase
from urllib3.exceptions import ReadTimeoutError

from zq.features.devices.model import MOST_HELD_MS
from zq.wire.framing import EVENT_STREAM, MSGPACK_STREAM, NDJSON

STREAMS = ("/jobs/take", "/events")
FRAMINGS = tuple(framing.content_type for framing in (NDJSON, MSGPACK_STREAM, EVENT_STREAM))
QUIET_S = 0.1
"""Silence after which the reader of a stream hangs up."""

OWN_QUEUE = "of-the-hooks"
"""A queue that no request draws, and so none gives limits."""

ONE_IN = int(os.environ.get("ONE_IN", "1"))
"""One in so many values is tried of bodies that consist of what other bodies have, too."""

OF_OTHERS = {
    *("POST /jobs/bulk", "POST /devices/jobs", "PATCH /jobs", "PATCH /queues/{queue}/settings"),
    *("PUT /crons/{group}", "POST /crons/{group}/entries", "PUT /crons/{group}/entries/{entry}"),
    *("POST /devices/{name}/fetch", "POST /devices/{name}/history", "POST /jobs/budgets/{key}"),
}
"""What takes such bodies: jobs as `POST /jobs` has them, patches, settings, filters."""

ONE_TYPE_IN = int(os.environ.get("ONE_TYPE_IN", "1"))
"""One in so many wrong types is tried of each value: with 2, two or three of some five."""

_values = itertools.count()
_types = itertools.count()
_pool = urllib3.PoolManager()

HUGE = 1e300
"""Stands in for numbers that MessagePack has no room for."""


@schemathesis.serializer("application/msgpack")
def pack(_context: Any, value: Any) -> Any:
    return msgpack.packb(value, default=lambda _: HUGE)


@schemathesis.deserializer("application/msgpack")
def unpack(_context: Any, response: Any) -> Any:
    return msgpack.unpackb(response.content)


def _first_document(response: Any) -> Any:
    """The first document of a stream, whatever its framing. Without one there is no judgement."""
    framing, content = response.headers["content-type"][0], response.content
    if framing == MSGPACK_STREAM.content_type:
        frames = _frames(content)
    else:
        lines = content.replace(b"data: ", b"").splitlines()
        frames = (json.loads(line) for line in lines if line.startswith(b"{"))
    document = next((frame for frame in frames if frame is not None), None)
    if document is None:
        raise NotImplementedError
    path = urllib.parse.urlsplit(response.request.url).path
    with Path(os.environ["STREAMS_READ"]).open("a") as read:
        read.write(f"{path} {framing}\n")
    if framing == EVENT_STREAM.content_type:
        raise NotImplementedError  # the schema is that of the data, not of the event around it
    return document


def _frames(content: bytes) -> Any:
    """MessagePack documents, each after its length in four bytes; nothing is a heartbeat."""
    start = 0
    while start + 4 <= len(content):
        end = start + 4 + int.from_bytes(content[start : start + 4], "big")
        if start + 4 < end <= len(content):
            yield msgpack.unpackb(content[start + 4 : end])
        start = end


for framing in FRAMINGS:
    schemathesis.deserializer(framing)(lambda _context, response: _first_document(response))

_next_framing = itertools.cycle(FRAMINGS)


def _hang_up(response: requests.Response, *_: Any, **__: Any) -> None:
    """Let something happen that a stream tells, and read what it says until it is quiet."""
    framing = response.headers.get("content-type", "")
    if framing not in FRAMINGS:
        return
    url = response.request.url or ""
    _new_job(url, _queue(url))
    response.raw.connection.sock.settimeout(QUIET_S)
    if framing == EVENT_STREAM.content_type:
        return  # schemathesis reads these itself
    content = b""
    try:
        while chunk := response.raw.read1(65_536, decode_content=True):
            content += chunk
    except ReadTimeoutError:
        pass
    response._content = content
    response.close()


def _queue(url: str) -> str:
    """The first queue that a stream was asked for, or one of many."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)
    return query.get("queue", ["q"])[0].split(",")[0]


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    """Go through the rules of a job where it is enqueued, and elsewhere through some of them."""
    if case.meta.phase.name != TestPhase.COVERAGE or case.path in STREAMS:
        return True
    if case.operation.label in OF_OTHERS:
        return next(_values) % ONE_IN == 0
    if case.meta.phase.data.scenario == CoverageScenario.INCORRECT_TYPE:
        return next(_types) % ONE_TYPE_IN == 0
    return True


@schemathesis.hook
def before_call(_context: Any, case: Any, kwargs: Any) -> None:
    """Wait for nothing; and ask about a job that there is, where an id is drawn as one would."""
    if case.path in STREAMS:
        kwargs["hooks"] = {"response": _hang_up}
        if "Accept" not in (case.headers or {}):
            case.headers["Accept"] = next(_next_framing)
    query = case.query or {}
    if _is_wait(query.get("wait_ms")):
        query["wait_ms"] = "1"
    if isinstance(case.body, dict) and _is_wait(case.body.get("wait_ms")):
        case.body["wait_ms"] = 1
    parameters = case.path_parameters or {}
    if case.path.startswith("/jobs/{id}") and len(str(parameters["id"])) > 1:
        parameters["id"] = _new_job(case.operation.schema.get_base_url())


def _is_wait(value: Any) -> bool:
    return str(value).isdigit() and int(value) <= MOST_HELD_MS


def _new_job(url: str, queue: str = "") -> Any:
    """The id of the job that all requests by id mean, or of one of its own in a queue.

    None if the queue has a name that no queue may have.
    """
    job = {"queue": queue or OWN_QUEUE, "type": "t", "payload": 1}
    if not queue:
        job |= {"unique_key": "k", "unique_while": "active"}
    reply = _pool.request("POST", urllib.parse.urljoin(url, "/jobs"), json=job)
    return reply.json().get("id")
