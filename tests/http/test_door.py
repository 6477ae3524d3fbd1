"""Doors beside each other: each has its own prefix, ids, formats and errors."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import cast
from uuid import UUID

import pytest
from aiohttp import ClientSession, web

from zq.engine.inbox import PendingReply
from zq.http.api.door import ZizqDoor
from zq.http.api.endpoints import endpoint
from zq.http.app import Application
from zq.http.door import PATH, Door, Route, Statuses, status_in
from zq.http.guard import Browsers, Guard
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.http.transport.gate import Gate
from zq.http.transport.h2.codec import codec_by
from zq.http.transport.listener import Listener
from zq.http.transport.turns import LoopTurns
from zq.model.clock import SystemClock
from zq.model.errors import InvalidRequest, NotFound, ZqError
from zq.model.ids import IdCodec
from zq.wire.codecs import BodyCodec

KEY = 7
UUID_TEXT = str(UUID(int=KEY))


class Uuids:
    """Ids as a door may have them that is nothing like Zizq's."""

    def text(self, key: int) -> str:
        return str(UUID(int=key))

    def key(self, text: str) -> int | None:
        try:
            return UUID(text).int
        except ValueError:
            return None


STATUSES: Statuses = {InvalidRequest: 400, NotFound: 404, ZqError: 500}


class PlainDoor(Door):
    """A door of two routes, whose errors are objects with a code."""

    prefix = "/v0/things"

    def __init__(self) -> None:
        route = Route("GET", "/{id}", self.get, None)
        super().__init__(Uuids(), [route, Route("POST", "/broken", self.broken, None)])

    async def get(self, request: web.BaseRequest) -> Answer:
        key = self.ids.key(request[PATH]["id"])
        if key is None:
            raise InvalidRequest("no uuid")
        return Answer(200, f"{key} {self.ids.text(key)}".encode())

    async def broken(self, request: web.BaseRequest) -> Answer:
        raise ValueError("nobody has thought of it")

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return _plain(status_in(STATUSES, error), error.code)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return _plain(status, text.replace(" ", "_"))

    def not_allowed(self, request: web.BaseRequest, methods: object) -> Answer:
        return _plain(405, "method_not_allowed")


def _plain(status: int, code: str) -> Answer:
    body = json.dumps({"error": {"code": code}}).encode()
    return Answer(status, body, {"Content-Type": "application/problem+json"})


def zizq() -> ZizqDoor:
    async def job(request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        raise InvalidRequest("no ulid")

    ids = cast(IdCodec, None)
    return ZizqDoor(ids, [Route("GET", "/jobs/{id}", endpoint(job), None)])


@pytest.fixture
async def refused() -> Counter[str]:
    return Counter()


@pytest.fixture
async def url(refused: Counter[str]) -> AsyncIterator[str]:
    """Where both doors are open."""
    clock = SystemClock()
    answers = Answers(clock, lambda: None, max_bytes=2**20, timeout=10)
    guard = Guard(Browsers((), ()), None)
    listener = Listener(
        Application([zizq(), PlainDoor()], guard, answers, refused),
        "off",
        replies=PendingReply,
        gate=Gate(clock, refused, max_connections=10, max_per_peer=0),
        clock=clock,
        turns=LoopTurns(),
        header_timeout=60,
        make_codec=codec_by("h2"),
    )
    _, port = await listener.start("127.0.0.1", 0)
    yield f"http://127.0.0.1:{port}"
    await listener.stop(1.0)


@pytest.mark.parametrize(
    ("method", "path", "status", "told"),
    [
        ("GET", f"/v0/things/{UUID_TEXT}", 200, f"{KEY} {UUID_TEXT}"),
        ("GET", "/v0/things/seven", 400, {"error": {"code": "invalid_request"}}),
        ("GET", "/v0/things/a/b", 404, {"error": {"code": "not_found"}}),
        ("GET", "/v0/things", 404, {"error": {"code": "not_found"}}),
        ("PUT", "/v0/things/broken", 405, {"error": {"code": "method_not_allowed"}}),
        ("POST", "/v0/things/broken", 500, {"error": {"code": "internal"}}),
        ("GET", "/jobs/seven", 400, {"error": "no ulid"}),
        ("GET", "/v0/others", 404, {"error": "not found"}),
        ("GET", "/v0", 404, {"error": "not found"}),
        ("PUT", "/jobs/seven", 405, ""),
    ],
)
async def test_each_door_answers_what_is_under_its_prefix_in_its_own_way(
    url: str, method: str, path: str, status: int, told: object
) -> None:
    async with ClientSession() as client, client.request(method, url + path) as reply:
        text = await reply.text()
        kind = reply.headers.get("Content-Type", "")
    assert reply.status == status
    assert (json.loads(text) if "json" in kind else text) == told
    if status >= 400 and path.startswith(PlainDoor.prefix):
        assert kind == "application/problem+json"


async def test_refusals_are_counted_whatever_the_door_calls_them(
    url: str, refused: Counter[str]
) -> None:
    async with ClientSession() as client:
        for path in ("/v0/things/seven", "/jobs/seven", "/v0/nothing"):
            await client.get(url + path)
    assert refused == {"invalid_request": 2}


async def test_bad_http_is_answered_by_the_door_that_it_is_for(url: str) -> None:
    headers = {"Expect": "a miracle"}
    async with ClientSession() as client:
        first = await client.get(f"{url}/jobs/seven", headers=headers)
        second = await client.get(f"{url}/v0/things/{UUID_TEXT}", headers=headers)
        assert (first.status, await first.json()) == (417, {"error": "expectation failed"})
        told = json.loads(await second.text())
        assert (second.status, told) == (417, {"error": {"code": "expectation_failed"}})
