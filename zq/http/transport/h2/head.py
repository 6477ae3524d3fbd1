"""Checks the head of a request by the rules of HTTP/2, and turns it into aiohttp's message."""

import re
from collections.abc import Iterable
from functools import lru_cache

from aiohttp.http import HttpVersion, RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from zq.http.transport.answer import MAX_HEADER_FIELD, MAX_HEADERS

Field = tuple[bytes, bytes]

VERSION = HttpVersion(2, 0)

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9a-z]+"
_NAME = re.compile(_TOKEN)
_METHOD = re.compile(_TOKEN, re.IGNORECASE)
_VALUE = re.compile(rb"(?:[^\x00\r\n\t ](?:[^\x00\r\n]*[^\x00\r\n\t ])?)?")
_PATH = re.compile(rb"[/*][\x21-\x22\x24-\x7e]*")
_SIZE = re.compile(r"[0-9]{1,19}")
_PSEUDO = frozenset((b":method", b":scheme", b":authority", b":path"))

OF_CONNECTIONS = frozenset(
    ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
)
"""Headers that concern one connection. HTTP/2 has none of them (RFC 9113, 8.2.2)."""

EMPTY_HEAD = RawRequestMessage(
    method="GET",
    path="/",
    version=VERSION,
    headers=CIMultiDictProxy(CIMultiDict()),
    raw_headers=(),
    should_close=False,
    compression=None,
    upgrade=False,
    chunked=False,
    url=URL("/"),
)
"""Stands in for a head that cannot be served."""


class BadHead(Exception):
    """A head that cannot be served. It has the status of the answer, and says what is wrong."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@lru_cache(maxsize=64)
def read_head(fields: tuple[Field, ...]) -> RawRequestMessage:
    """A request from its header fields. Raises BadHead (RFC 9113, 8.2 and 8.3)."""
    pseudo: dict[bytes, bytes] = {}
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in fields:
        if len(value) > MAX_HEADER_FIELD:
            raise _too_long(name)
        if not _VALUE.fullmatch(value):
            raise _bad(f"the value of {_text(name)} has a character that none may have")
        if name[:1] == b":":
            if name in pseudo or name not in _PSEUDO or headers:
                raise _bad(f"{_text(name)} is unknown, there twice or behind other headers")
            pseudo[name] = value
        else:
            headers.add(_name(name), _text(value))
    if len(headers) > MAX_HEADERS:
        raise BadHead(431, f"more than {MAX_HEADERS} headers")
    if headers.get("te", "trailers") != "trailers":
        raise _bad("te may only be trailers")
    return _message(pseudo, headers)


def announced_size(head: RawRequestMessage, *, ended: bool) -> int | None:
    """The size that a request announces for its body, if any.

    Raises BadHead if it is no number, or if the request has `ended` without that body.
    """
    text = head.headers.get("Content-Length")
    if text is None:
        return None
    if not _SIZE.fullmatch(text):
        raise _bad("content-length is no number of bytes")
    if ended and int(text):
        raise _bad(f"content-length announces {text} bytes, but no body follows")
    return int(text)


def check_trailers(fields: Iterable[Field]) -> None:
    """Raises BadHead for trailers that make their request malformed."""
    for name, value in fields:
        _name(name)
        if not _VALUE.fullmatch(value):
            raise _bad(f"the value of {_text(name)} has a character that none may have")


def _message(pseudo: dict[bytes, bytes], headers: CIMultiDict[str]) -> RawRequestMessage:
    try:
        method, path = pseudo[b":method"], pseudo[b":path"]
        scheme = pseudo[b":scheme"]
    except KeyError as missing:
        raise _bad(f"{_text(missing.args[0])} is missing") from None
    if not _METHOD.fullmatch(method) or not _PATH.fullmatch(path) or not scheme:
        raise _bad(":method, :path or :scheme is malformed")
    authority = _text(pseudo.get(b":authority", b""))
    if authority and headers.setdefault("Host", authority) != authority:
        raise _bad(":authority and host differ")
    if len(headers.getall("Host", ())) > 1:
        raise _bad("host is there twice")
    target = _text(path)
    text, _, query = target.partition("?")
    return EMPTY_HEAD._replace(
        method=method.decode(),
        path=target,
        headers=CIMultiDictProxy(headers),
        url=URL.build(path=text, query_string=query, encoded=True),
    )


@lru_cache(maxsize=256)
def _name(name: bytes) -> str:
    """A valid name of a header, as text. Raises BadHead."""
    if not _NAME.fullmatch(name):
        raise _bad(f"{_text(name)} is not the name of a header")
    text = name.decode()
    if text in OF_CONNECTIONS:
        raise _bad(f"{text} has no place in HTTP/2")
    return text


def _too_long(name: bytes) -> BadHead:
    if name == b":path":
        return BadHead(414, f"the path is longer than {MAX_HEADER_FIELD} bytes")
    return BadHead(431, f"a header is longer than {MAX_HEADER_FIELD} bytes")


def _bad(text: str) -> BadHead:
    return BadHead(400, f"bad HTTP request: {text}")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
