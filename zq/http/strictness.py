"""`Zq-Strict: 1`: a client that wants unknown fields and parameters refused.

Zizq ignores them, and so do its routes here, unless the client asks for more.
"""

from aiohttp import web
from multidict import istr

from zq.model.errors import InvalidRequest, UnknownField
from zq.wire.codecs import STRICT, BodyCodec

HEADER = istr("Zq-Strict")


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
