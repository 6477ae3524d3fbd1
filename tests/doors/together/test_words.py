"""Errors at the other doors use their words: no job and no queue where there are none."""

import inspect
import json
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

import pytest
from conformance.client import JSON, Client
from conformance.site import Site

import zq.model
from zq.doors.queue_ti.http.description import OPERATIONS as MESSAGES
from zq.doors.queue_ti.http.documents import text_of
from zq.doors.topics import errors as topic_errors
from zq.doors.topics.http.description import OPERATIONS as RECORDS
from zq.doors.topics.http.documents import problem
from zq.model.errors import ZqError
from zq.rooms import ROOMS

QUOTED = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`|--[\w-]+""")
ABOUT_KINDS = (topic_errors.NotAQueue, topic_errors.TopicIsQueue)
"""A queue is a kind of topic at `/v0`."""

ODD: list[Any] = [None, True, -1, 0, 1.5, 2**70, "", "_x", "a,b", "x" * 600, "x\0", ["x"], {"a": 1}]
NAMES = ["t", "q", "none", "_bad", "a,b", "x" * 600]
OURS = ("zq.model", *ROOMS)
NATIVE = "the job 'job' of a queue has `jobs`"
TYPES = {str: "x", int: 1, float: 1.0, bool: True}


def native_words(text: str, *words: str) -> list[str]:
    return re.findall(rf"\b(?:{'|'.join(words)})s?\b", QUOTED.sub("", text))


def made(kind: type[ZqError]) -> ZqError:
    """An error of this kind, with arguments of the right types."""
    values: list[Any] = []
    for each in inspect.signature(kind, eval_str=True).parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) or each.default is not each.empty:
            continue
        named = NATIVE if each.name == "message" else TYPES.get(each.annotation, ["x", "y"])
        values.append(named)
    return kind(*values)


def kinds() -> Iterator[type[ZqError]]:
    for module in pkgutil.iter_modules(zq.model.__path__):
        import_module(f"zq.model.{module.name}")
    for room in ROOMS:
        if find_spec(f"{room}.errors"):
            import_module(f"{room}.errors")

    def below(kind: type[ZqError]) -> Iterator[type[ZqError]]:
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    for kind in set(below(ZqError)):
        room, _, file = kind.__module__.rpartition(".")
        if room.startswith(OURS) and not file.startswith("client"):
            yield kind


@pytest.mark.parametrize("kind", sorted(kinds(), key=str), ids=lambda kind: kind.__name__)
def test_every_error_is_told_in_the_words_of_the_door(kind: type[ZqError]) -> None:
    error = made(kind)
    assert native_words(text_of(error), "job", "queue") == []
    said = json.loads(problem(error).body)["error"]["message"]
    assert native_words(said, "job", *(() if kind in ABOUT_KINDS else ("queue",))) == []


def test_what_is_quoted_stays() -> None:
    text = "the job 'the job' of queue \"queue\" has `jobs`: raise --max-inbox-jobs"
    assert text_of(ZqError(text)) == (
        "the message 'the job' of topic \"queue\" has `jobs`: raise --max-inbox-jobs"
    )


@pytest.fixture
async def client(site: Site) -> AsyncIterator[Client]:
    async with Client(site, JSON) as client:
        yield client


def bad_requests(operations: Any, prefix: str) -> Iterator[tuple[str, str, Any]]:
    """Every route with bad names, and with each field of its body gone odd in turn."""
    for (method, path), operation in operations.items():
        for name in NAMES:
            place = prefix + re.sub(r"\{[a-z.]+\}", quote(name, safe=""), path)
            yield method, place, None
            if operation.body is None:
                continue
            yield method, place, {}
            if name in ("t", "q"):
                for field in operation.body.__struct_encode_fields__:
                    for value in ODD:
                        yield method, place, VALID | {field: value}


VALID = {
    "topic": "t",
    "payload": "x",
    "node": "n",
    "seqs": [1],
    "records": [{"data": 1}],
    "source": "t",
    "dest": "u",
    "username": "u",
    "password": "p",
}
STREAMS = ("/work", "/watch/", "/watch")


@pytest.mark.parametrize(
    ("operations", "prefix"), [(RECORDS, "/v0"), (MESSAGES, "/api")], ids=["records", "messages"]
)
async def test_bad_requests_are_refused_in_the_words_of_the_door(
    client: Client, operations: Any, prefix: str
) -> None:
    await client.call("PUT", "/v0/topics/q", {"type": "queue"})
    await client.call("PUT", "/api/topic-configs/full", {"max_depth": 1})
    await client.call("POST", "/api/messages", {"topic": "full", "payload": "x"})
    refusals: dict[str, str] = {}
    for method, path, doc in [
        *bad_requests(operations, prefix),
        ("POST", "/api/messages", {"topic": "full", "payload": "x"}),
        ("POST", "/v0/topics/t/claim", {"node": "n"}),
    ]:
        if any(path.endswith(end) or end in path for end in STREAMS):
            continue
        body = None if doc is None else json.dumps(doc).encode()
        headers = {} if body is None else {"content-type": "application/json"}
        reply = await client.send(method, path, body, headers)
        assert reply.status < 500, (method, path, doc)
        if reply.status >= 400 and reply.body:
            error = reply.doc["error"]
            refusals[error if isinstance(error, str) else error["message"]] = f"{method} {path}"
    assert len(refusals) > 40
    kinds = re.compile(r"is (not )?a (queue|log)\b")
    native = {
        text: place
        for text, place in refusals.items()
        if not kinds.search(text)
        and native_words(text, "job", "queue", "retry_limit", "unique_key")
    }
    assert native == {}
