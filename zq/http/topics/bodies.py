"""Request bodies of the `/v0` dialect. Fields that nobody knows are passed over."""

from typing import Any, TypeVar

import msgspec
from aiohttp import hdrs, web

from zq.http.bulk_line import SMALL, BulkLine
from zq.http.transport.bodies import Bodies
from zq.http.zizq.endpoints import UnsupportedMediaType
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME
from zq.model.topics import MOST_TAG_BYTES, TagMatch, TopicPatch, check_label, tag_begins, tag_is
from zq.wire.codecs import JSON, decode
from zq.wire.topics import RecordBody

T = TypeVar("T")

ACCEPTED = ["application/json"]
FORM = "application/x-www-form-urlencoded"
"""What `curl -d` says that it sends, whatever it sends: the body is JSON all the same."""


class AppendBody(msgspec.Struct):
    records: list[RecordBody] = []
    node: str | None = None
    idempotency_key: str | None = None
    create: bool | None = None
    config: TopicPatch | None = None


class DiffBody(msgspec.Struct):
    from_seq: int = 0
    limit: int = 0
    node: str | list[str] | None = None
    include_tags: bool = False
    include_meta: bool = True
    wait_ms: int = 0
    max_bytes: int = 0


class DeleteBody(msgspec.Struct):
    match: Any = None
    before_seq: int | None = None


DIFF = msgspec.json.Decoder(DiffBody)
DELETE = msgspec.json.Decoder(DeleteBody)
CONFIG = msgspec.json.Decoder(TopicPatch)
ANYTHING = msgspec.json.Decoder(dict[str, Any])

_append = msgspec.json.Decoder(AppendBody)


class TopicBodies:
    """Reads bodies in their shapes; the memory that they take is given back."""

    def __init__(self, bodies: Bodies, line: BulkLine) -> None:
        self._bodies = bodies
        self._line = line

    async def read(self, request: web.BaseRequest, shape: msgspec.json.Decoder[T]) -> T:
        """A body in its shape.

        Raises `UnsupportedMediaType`, `InvalidRequest`, and what `Bodies.read` does.
        """
        _check_type(request)
        body = await self._bodies.read(request, reserved=True)
        try:
            return decode(body, JSON, shape)
        finally:
            self._bodies.release(len(body))

    async def read_new(self, request: web.BaseRequest) -> tuple[AppendBody, bytes]:
        """The body of a write, which takes turns; `release` it when the write is done."""
        _check_type(request)
        body = await self._bodies.read(request, reserved=False)
        try:
            if len(body) > SMALL:
                await self._line.take(request.transport, len(body))
            return decode(body, JSON, _append), body
        except BaseException:
            self._bodies.release(len(body))
            raise

    def release(self, body: bytes) -> None:
        """A write is done."""
        self._bodies.release(len(body))


def matched(match: object) -> TagMatch:
    """What a `match` of a deletion means. Raises `InvalidRequest`."""
    if isinstance(match, str):
        match = ["tag", "Eq", match]
    if not (isinstance(match, list) and len(match) == 3 and match[0] == "tag"):
        raise InvalidRequest('match must be ["tag", "Eq", TAG] or ["tag", "Glob", "PREFIX*"]')
    _, operator, text = match
    if isinstance(text, str):
        check_label("match", text, MOST_TAG_BYTES)
        if operator == "Eq":
            return tag_is(text)
        if operator == "Glob" and text.find("*") == len(text) - 1:
            return tag_begins(text[:-1])
    raise InvalidRequest('match must be ["tag", "Eq", TAG] or ["tag", "Glob", "PREFIX*"]')


def sequence(field: str, value: int) -> int:
    """A number of a record. Raises `InvalidRequest`."""
    if not 0 <= value <= MAX_TIME:
        raise InvalidRequest(f"{field} must be between 0 and {MAX_TIME}")
    return value


def _check_type(request: web.BaseRequest) -> None:
    kind = request.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()
    if kind not in (*ACCEPTED, FORM):
        raise UnsupportedMediaType(
            f"the content type {kind!r} is not understood: send application/json", ACCEPTED
        )
