"""Which format a request is in and which its answer is to have.

Substring tests, in the order of the table in the API's contract: MessagePack wins where both are
accepted, q-values count for nothing, no header means JSON.
"""

from aiohttp import web

from zq.model.errors import ZqError
from zq.wire.codecs import JSON, MSGPACK, Codec
from zq.wire.events import EVENT_FRAMES, EVENT_LINES, EVENTS, EventFraming
from zq.wire.framing import EVENT_STREAM, MSGPACK_STREAM, NDJSON, Framing

FORMATS = [JSON.content_type, MSGPACK.content_type]
_PLAIN_CODINGS = {"identity", "chunked"}
STREAM_FORMATS = [EVENT_STREAM.content_type, NDJSON.content_type, MSGPACK_STREAM.content_type]


class NotAcceptable(ZqError):
    """No format that the client accepts."""

    code = "not_acceptable"

    def __init__(self, supported: list[str]) -> None:
        super().__init__("not acceptable")
        self.supported = supported


class UnsupportedMediaType(ZqError):
    """A body in a format, or an encoding, that is not understood."""

    code = "unsupported_media_type"

    def __init__(
        self, message: str = "unsupported media type", supported: list[str] = FORMATS
    ) -> None:
        super().__init__(message)
        self.supported = supported


def answer_codec(request: web.BaseRequest) -> Codec:
    """The format of the answer. Raises `NotAcceptable`."""
    accept = request.headers.get("Accept")
    if accept is None or not accept.isascii():
        return JSON
    if MSGPACK.content_type in accept:
        return MSGPACK
    if JSON.content_type in accept or "*/*" in accept:
        return JSON
    raise NotAcceptable(FORMATS)


def body_codec(request: web.BaseRequest) -> Codec:
    """The format of the request's body. Raises `UnsupportedMediaType`."""
    content_type = request.headers.get("Content-Type")
    if content_type is None:
        return JSON
    if MSGPACK.content_type in content_type:
        return MSGPACK
    if JSON.content_type in content_type:
        return JSON
    raise UnsupportedMediaType


def refuse_codings(request: web.BaseRequest) -> None:
    """Raise `UnsupportedMediaType` for a body that would have to be decoded: it has two sizes.

    For a transfer coding RFC 9112 (6.1) advises 501. But clients send again what met with a 5xx,
    and this will not get any better.
    """
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise UnsupportedMediaType(
            f"unsupported content encoding {encoding!r}: send the body uncompressed"
        )
    codings = request.headers.get("Transfer-Encoding", "chunked")
    if not {coding.strip().lower() for coding in codings.split(",")} <= _PLAIN_CODINGS:
        raise UnsupportedMediaType(
            f"unsupported transfer coding {codings!r}: send the body chunked and nothing else, or"
            " with its Content-Length"
        )


def lines_or_codec(request: web.BaseRequest) -> Codec | None:
    """The format of an answer that may also be NDJSON, which None stands for.

    Raises `NotAcceptable`.
    """
    if NDJSON.content_type in request.headers.get("Accept", ""):
        return None
    return answer_codec(request)


def stream_framing(request: web.BaseRequest) -> Framing:
    """The format of a take stream. Raises `NotAcceptable`."""
    accept = request.headers.get("Accept", "*/*")
    if EVENT_STREAM.content_type in accept:
        return EVENT_STREAM
    if MSGPACK_STREAM.content_type in accept or MSGPACK.content_type in accept:
        return MSGPACK_STREAM
    if any(known in accept for known in (NDJSON.content_type, JSON.content_type, "*/*")):
        return NDJSON
    raise NotAcceptable(STREAM_FORMATS)


def event_framing(request: web.BaseRequest) -> EventFraming:
    """The format of a stream of events. Raises `NotAcceptable`."""
    accept = request.headers.get("Accept", "*/*")
    if EVENTS.content_type in accept or "*/*" in accept:
        return EVENTS
    if EVENT_FRAMES.content_type in accept or MSGPACK.content_type in accept:
        return EVENT_FRAMES
    if EVENT_LINES.content_type in accept or JSON.content_type in accept:
        return EVENT_LINES
    raise NotAcceptable(STREAM_FORMATS)
