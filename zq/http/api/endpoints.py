"""Endpoints: what they read of a request (formats, query, body), and how they answer.

Headers are searched for substrings, in the order of the table in the API's contract. MessagePack
wins if both formats are accepted, q-values are ignored, and no header means JSON.

Zizq ignores unknown fields and parameters, and so do its routes here, unless a client asks for
more by `Zq-Strict: 1`.
"""

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager

from aiohttp import hdrs, web
from multidict import istr

from zq.engine.turns import Turns
from zq.http.bulk_line import SMALL, BulkLine
from zq.http.door import Handler
from zq.http.gzip import is_gzip, restored
from zq.http.reading import RequestBodies
from zq.http.transport.answer import Answer, Response
from zq.model.errors import InvalidRequest, UnknownField, ZqError
from zq.wire.codecs import JSON, MSGPACK, STRICT, BodyCodec
from zq.wire.framing import (
    EVENT_FRAMES,
    EVENT_LINES,
    EVENT_STREAM,
    EVENTS,
    MSGPACK_STREAM,
    NDJSON,
    EventFraming,
    Framing,
)
from zq.wire.query import ALIASES, CHOOSING, LISTS, QUERY, TEXTS, filters_nothing, invalid_query
from zq.wire.strict import near_name
from zq.wire.weight import LIGHT_BYTES, QUICK_BYTES

HEADER = istr("Zq-Strict")
JOB_BYTES = 1024
"""The memory of a job of a bulk, from its body to its answer, besides its payload."""

FORMATS = [JSON.content_type, MSGPACK.content_type]
STREAM_FORMATS = [EVENT_STREAM.content_type, NDJSON.content_type, MSGPACK_STREAM.content_type]
Plain = Callable[[web.BaseRequest, BodyCodec], Awaitable[Response]]
WithBody = Callable[[web.BaseRequest, BodyCodec, bytes, BodyCodec], Awaitable[Response]]
CAREFUL = web.RequestKey("careful", bool)
"""Set for the requests of the operators' page: no filter is passed over, and a change by filter is
bound to a preview."""

_READS = ("GET", "HEAD")


class NotAcceptable(ZqError):
    """The client accepts no format that the endpoint has."""

    code = "not_acceptable"

    def __init__(self, supported: list[str]) -> None:
        super().__init__("not acceptable")
        self.supported = supported


class UnsupportedMediaType(ZqError):
    """The body is in an unknown format."""

    code = "unsupported_media_type"

    def __init__(
        self, message: str = "unsupported media type", supported: list[str] = FORMATS
    ) -> None:
        super().__init__(message)
        self.supported = supported


class PlainRefusal(InvalidRequest):
    """An `InvalidRequest` that is answered as plain text, as in Zizq."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def is_strict(request: web.BaseRequest) -> bool:
    """True if the client wants unknown fields refused. Raises `InvalidRequest`."""
    text = request.headers.get(HEADER)
    return text is not None and strict_value(text)


def strict_value(text: str) -> bool:
    """The value of the header. Raises `InvalidRequest`."""
    if text not in ("0", "1"):
        raise InvalidRequest(f"{HEADER} is 1 (refuse unknown fields) or 0, not {text[:64]!r}")
    return text == "1"


def as_strict(codec: BodyCodec, request: web.BaseRequest) -> BodyCodec:
    """The format of a request's body, strict if the client wants that."""
    return STRICT[codec.name] if HEADER in request.headers and is_strict(request) else codec


def refuse_unread_query(request: web.BaseRequest) -> None:
    """Raise `UnknownField` if a strict client has sent a query to a route that reads none."""
    if HEADER in request.headers and is_strict(request):
        for name in request.rel_url.query:
            raise UnknownField(
                f"unknown parameter {name[:64]!r}: this request has none in its query"
            )


def answer_codec(request: web.BaseRequest) -> BodyCodec:
    """The format of the answer. Raises `NotAcceptable`."""
    accept = request.headers.get(hdrs.ACCEPT)
    if accept is None or not accept.isascii():
        return JSON
    if MSGPACK.content_type in accept:
        return MSGPACK
    if JSON.content_type in accept or "*/*" in accept:
        return JSON
    raise NotAcceptable(FORMATS)


def body_codec(request: web.BaseRequest) -> BodyCodec:
    """The format of the request's body. Raises `UnsupportedMediaType`."""
    content_type = request.headers.get(hdrs.CONTENT_TYPE)
    if content_type is None:
        return as_strict(JSON, request)
    if MSGPACK.content_type in content_type:
        return as_strict(MSGPACK, request)
    if JSON.content_type in content_type:
        return as_strict(JSON, request)
    raise UnsupportedMediaType


def lines_or_codec(request: web.BaseRequest) -> BodyCodec | None:
    """The format of an answer that may also be NDJSON. None means NDJSON.

    Raises `NotAcceptable`.
    """
    if NDJSON.content_type in request.headers.get(hdrs.ACCEPT, ""):
        return None
    return answer_codec(request)


def stream_framing(request: web.BaseRequest) -> Framing:
    """The format of a take stream. Raises `NotAcceptable`."""
    accept = request.headers.get(hdrs.ACCEPT, "*/*")
    if EVENT_STREAM.content_type in accept:
        return EVENT_STREAM
    if MSGPACK_STREAM.content_type in accept or MSGPACK.content_type in accept:
        return MSGPACK_STREAM
    if any(known in accept for known in (NDJSON.content_type, JSON.content_type, "*/*")):
        return NDJSON
    raise NotAcceptable(STREAM_FORMATS)


def event_framing(request: web.BaseRequest) -> EventFraming:
    """The format of a stream of events. Raises `NotAcceptable`."""
    accept = request.headers.get(hdrs.ACCEPT, "*/*")
    if EVENTS.content_type in accept or "*/*" in accept:
        return EVENTS
    if EVENT_FRAMES.content_type in accept or MSGPACK.content_type in accept:
        return EVENT_FRAMES
    if EVENT_LINES.content_type in accept or JSON.content_type in accept:
        return EVENT_LINES
    raise NotAcceptable(STREAM_FORMATS)


def answer(
    document: object, codec: BodyCodec, status: int = 200, headers: dict[str, str] | None = None
) -> Answer:
    """Make an answer from a document."""
    all_headers = {"Content-Type": codec.content_type}
    if headers:
        all_headers |= headers
    return Answer(status, codec.encode(document), all_headers)


def endpoint(serve: Plain) -> Handler:
    """An endpoint without a body: ``serve(request, answer format)``.

    A DELETE with a body is refused: what it filters by would be lost. A strict client hears of
    any body that would not be read.
    """

    async def handler(request: web.BaseRequest) -> Response:
        if request.can_read_body:
            if request.method == "DELETE":
                raise InvalidRequest(
                    "a DELETE has no body, and this one was not read: put the filter into the query"
                )
            if is_strict(request):
                raise InvalidRequest(
                    "this request takes no body, and this one was not read: leave it out"
                )
        return await serve(request, answer_codec(request))

    handler.__doc__ = serve.__doc__
    return handler


class BodyEndpoints:
    """Endpoints that read a body: ``serve(request, answer format, body, body's format)``."""

    def __init__(self, bodies: RequestBodies, line: BulkLine) -> None:
        self._bodies = bodies
        self._line = line

    @property
    def turns(self) -> Turns:
        """A body that takes several slices of the loop is worked on in these turns."""
        return self._bodies.turns

    def holding_jobs(self, count: int) -> AbstractContextManager[None]:
        """Count so many new jobs as memory that requests hold, besides their payloads."""
        return self._bodies.holding(count * JOB_BYTES)

    def new_jobs(self, serve: WithBody, *, takes_gzip: bool = False) -> Handler:
        """An endpoint for new jobs. Large bodies take turns."""
        bodies, line = self._bodies, self._line

        async def handler(request: web.BaseRequest) -> Response:
            accepted, sent = answer_codec(request), body_codec(request)
            coded = takes_gzip and is_gzip(request)
            body = await bodies.read(request, reserved=False, coded=coded)
            if coded:
                body = await restored(body, bodies, reserved=False)
            size = len(body)
            try:
                if size > SMALL:
                    await line.take(request.transport, size)
                if size > QUICK_BYTES:
                    body, sent = await bodies.light(request, body, sent)
                # The endpoint has the only reference, and drops it once it has made jobs of it.
                served = serve(request, accepted, body, sent)
                body = b""
                if size <= LIGHT_BYTES:
                    return await served
                with bodies.holding(size):
                    return await served
            finally:
                bodies.release(size)

        handler.__doc__ = serve.__doc__
        return handler

    def change(
        self,
        serve: WithBody,
        *,
        optional: bool = False,
        ignores_foreign: bool = False,
        takes_gzip: bool = False,
    ) -> Handler:
        """An endpoint for anything else. It has a reserved share of memory.

        If the body is `optional`, it may be missing, and then its format does not matter. An
        endpoint that `ignores_foreign` bodies reads and drops a body in another format.
        """
        bodies = self._bodies

        async def handler(request: web.BaseRequest) -> Response:
            accepted = answer_codec(request)
            foreign = False
            try:
                sent = JSON if optional and not request.can_read_body else body_codec(request)
            except UnsupportedMediaType:
                if not ignores_foreign or is_strict(request):
                    raise
                sent, foreign = JSON, True
            coded = takes_gzip and is_gzip(request)
            body = await bodies.read(request, reserved=True, coded=coded)
            if coded:
                body = await restored(body, bodies, reserved=True)
            size = len(body)
            try:
                if foreign:
                    body = b""
                if size > QUICK_BYTES:
                    body, sent = await bodies.light(request, body, sent)
                return await serve(request, accepted, body, sent)
            finally:
                bodies.release(size)

        handler.__doc__ = serve.__doc__
        return handler


def is_careful(request: web.BaseRequest) -> bool:
    """True for a request of the operators' page."""
    return CAREFUL in request


def parameters(
    request: web.BaseRequest, allowed: Collection[str], may_be_empty: Collection[str] = ()
) -> dict[str, str]:
    """The query's parameters. An empty value counts as missing. Raises `InvalidRequest`.

    An empty filter is an error: if it counted as missing, a change could delete everything, and a
    list show more than was asked for. Some reads are Zizq's, whose clients send empty filters:
    these `may_be_empty`, but not for the operators' page and strict clients.
    """
    found: dict[str, str] = {}
    if request.method not in _READS:
        _refuse_lost_query(request)
    for name, value in request.rel_url.query.items():
        name = ALIASES.get(name, name)
        if name not in allowed:
            raise _unknown(name, allowed)
        if name in found:
            raise invalid_query(
                f"duplicate field `{name}`: give it once, with several names as a comma list"
                if name in LISTS
                else f"duplicate field `{name}`: give it once"
            )
        if (
            name in CHOOSING
            and filters_nothing(name, value)
            and (name not in may_be_empty or is_careful(request) or is_strict(request))
        ):
            raise invalid_query(
                f"`{name}` is empty: say which are meant, or leave it out, which means any"
            )
        found[name] = value
    return {name: value for name, value in found.items() if value or name in TEXTS}


def _refuse_lost_query(request: web.BaseRequest) -> None:
    """Raise `InvalidRequest` if a change has a `?` with nothing behind it: a filter was lost."""
    if not request.rel_url.query and "?" in request.raw_path:
        raise invalid_query(
            "nothing follows the `?`: say which jobs are meant, or leave out the `?`"
        )


def _unknown(name: str, allowed: Collection[str]) -> UnknownField:
    known = "`, `".join(allowed)
    expected = f"expected one of `{known}`" if known else "and this request has none in its query"
    near = near_name(name, allowed)
    question = f"; did you mean `{near}`?" if near else ""
    return UnknownField(f"{QUERY}{name}: unknown field `{name}`, {expected}{question}")
