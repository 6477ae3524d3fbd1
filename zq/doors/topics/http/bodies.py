"""Request bodies of the `/v0` dialect. Only strict clients have unknown fields refused."""

from typing import Any, Literal, TypeVar

import msgspec
from aiohttp import hdrs, web

from zq.doors.topics.http.documents import RecordBody
from zq.doors.topics.model import (
    MOST_PAGE,
    MOST_PAGE_BYTES,
    USUAL_BATCH_BYTES,
    USUAL_PAGE_BYTES,
    TopicPatch,
)
from zq.doors.topics.model_routers import TagFilter, tag_filter
from zq.http.api.endpoints import UnsupportedMediaType, as_strict
from zq.http.bulk_line import SMALL, BulkLine
from zq.http.gzip import is_gzip, restored
from zq.http.reading import RequestBodies
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME
from zq.wire.codecs import JSON, decode
from zq.wire.weight import QUICK_BYTES

T = TypeVar("T")

ACCEPTED = ["application/json"]
USUAL_LIMIT = 256

FORM = "application/x-www-form-urlencoded"
"""`curl -d` sends this type with every body. The body is JSON all the same."""


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


class RouterBody(msgspec.Struct):
    source: str | None = None
    dest: str | None = None
    preserve_node: bool = True
    preserve_tag: bool = True
    create_dest: bool = True
    filter: Any = None
    allow_cycle: bool = False


class FromBody(msgspec.Struct):
    from_seq: int = 0
    tail: bool = False


class WatchBody(msgspec.Struct):
    topics: dict[str, FromBody] = {}
    node: str | list[str] | None = None
    limit: int = 0
    max_batch_bytes: int = USUAL_BATCH_BYTES
    heartbeat_ms: int = 15_000
    include_meta: bool = True
    include_tags: bool = False
    include_data: bool = True
    consistency: Literal["eventual", "strong"] = "eventual"


class ClaimBody(msgspec.Struct):
    node: str = ""
    max: int = 1
    lease_ms: int | None = None


class SettleSeqsBody(msgspec.Struct):
    node: str = ""
    seqs: list[int] = []
    lease_ids: list[str | None] = []
    delay_ms: int = 0


class ExtendBody(SettleSeqsBody):
    lease_ms: int | None = None


CLAIM = msgspec.json.Decoder(ClaimBody)
SETTLE = msgspec.json.Decoder(SettleSeqsBody)
EXTEND = msgspec.json.Decoder(ExtendBody)
DIFF = msgspec.json.Decoder(DiffBody)
DELETE = msgspec.json.Decoder(DeleteBody)
CONFIG = msgspec.json.Decoder(TopicPatch)
WATCH = msgspec.json.Decoder(WatchBody)
ROUTER = msgspec.json.Decoder(RouterBody)

_append = msgspec.json.Decoder(AppendBody)


class TopicBodies:
    """Reads bodies as values of their types, and releases their memory."""

    def __init__(self, bodies: RequestBodies, line: BulkLine, *, takes_gzip: bool = False) -> None:
        self._takes_gzip = takes_gzip
        self._bodies = bodies
        self._line = line

    async def read(self, request: web.BaseRequest, shape: msgspec.json.Decoder[T]) -> T:
        """Read a body.

        Raises `UnsupportedMediaType`, `InvalidRequest`, and what `Bodies.read` does.
        """
        _check_type(request)
        body = await self._read(request, reserved=True)
        try:
            return await self._decoded(request, body, shape)
        finally:
            self._bodies.release(len(body))

    async def read_new(self, request: web.BaseRequest) -> tuple[AppendBody, bytes]:
        """Read the body of a write when its turn comes. Call `release` when the write is done."""
        _check_type(request)
        body = await self._read(request, reserved=False)
        try:
            if len(body) > SMALL:
                await self._line.take(request.transport, len(body))
            return await self._decoded(request, body, _append), body
        except BaseException:
            self._bodies.release(len(body))
            raise

    def release(self, body: bytes) -> None:
        """Release the memory of a body whose write is done."""
        self._bodies.release(len(body))

    async def _read(self, request: web.BaseRequest, *, reserved: bool) -> bytes:
        coded = self._takes_gzip and is_gzip(request)
        body = await self._bodies.read(request, reserved=reserved, coded=coded)
        return await restored(body, self._bodies, reserved=reserved) if coded else body

    async def _decoded(
        self, request: web.BaseRequest, body: bytes, shape: msgspec.json.Decoder[T]
    ) -> T:
        codec = as_strict(JSON, request)
        if len(body) > QUICK_BYTES:
            body, codec = await self._bodies.light(request, body, codec)
        return decode(body, codec, shape)


def filtered(sent: object, field: str) -> TagFilter:
    """A filter of records by their tags, from the field of a body. Raises `InvalidRequest`."""
    match ["tag", "Eq", sent] if isinstance(sent, str) else sent:
        case ["tag", str(operator), str(text)]:
            found = tag_filter(operator, text)
            if found is not None:
                return found
    raise InvalidRequest(f'{field} must be ["tag", "Eq", TAG] or ["tag", "Glob", "PREFIX*"]')


def sequence(field: str, value: int) -> int:
    """A number of a record. Raises `InvalidRequest`."""
    if not 0 <= value <= MAX_TIME:
        raise InvalidRequest(f"{field} must be between 0 and {MAX_TIME}")
    return value


def nodes_of(sent: str | list[str] | None) -> list[str]:
    """The nodes whose records the reader does not want."""
    return [sent] if isinstance(sent, str) else sent or []


def page_limit(sent: int) -> int:
    """How many records a page may have."""
    return min(sent, MOST_PAGE) if sent > 0 else USUAL_LIMIT


def page_bytes(sent: int) -> int:
    """About how many bytes a page may have."""
    return min(sent, MOST_PAGE_BYTES) if sent > 0 else USUAL_PAGE_BYTES


def _check_type(request: web.BaseRequest) -> None:
    kind = request.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()
    if kind not in (*ACCEPTED, FORM):
        raise UnsupportedMediaType(
            f"the content type {kind!r} is not understood: send application/json", ACCEPTED
        )
