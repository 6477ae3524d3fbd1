"""One whole answer, its bytes in HTTP/1.1, and the interface of what makes answers."""

from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from aiohttp import web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion, HttpVersion10
from aiohttp.http_exceptions import LineTooLong

from zq.model.errors import ZqError

SERVER = "zq"
"""The name of the server in answers. Only the holder of a key may learn its version."""

MAX_HEADER_FIELD = 64 * 1024
MAX_REQUEST_LINE = MAX_HEADER_FIELD + 1
"""This is one more than `MAX_HEADER_FIELD`. The parser raises the same exception for a long request
line and for a long header, and its limit tells which of the two it was."""
MAX_HEADERS = 100

SMALL = 64 * 1024
"""The size of an answer that is never refused, and of each part of a larger one, in bytes. A
connection of HTTP/1.1 with more unsent bytes takes no further request: answers do not pile up."""

EXTRA_HEADERS = web.RequestKey("extra_headers", Mapping[str, str])
"""Headers that the answer to a request has besides its own, if there are any. Streams add them
themselves."""

_BODILESS = frozenset((HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED))
_NOTHING: Mapping[str, str] = {}


class Answer:
    """A status, headers and a body. The connection adds the headers that every answer has.

    aiohttp's response costs three times as much to make and to write, because it supports cookies,
    compression and bodies of any kind. Streams still use it.
    """

    __slots__ = ("body", "closes", "headers", "sent", "status")

    def __init__(
        self, status: int = 200, body: bytes = b"", headers: Mapping[str, str] = _NOTHING
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.closes = False
        """True if the connection closes after this answer."""
        self.sent = False

    def add_headers_of(self, request: web.BaseRequest) -> None:
        """Add the headers that a request wants in its answer."""
        if (extra := request.get(EXTRA_HEADERS)) is not None:
            own = self.headers.get("Vary")
            self.headers = {**self.headers, **extra}
            if own is not None and "Vary" in extra:
                self.headers["Vary"] = f"{own}, {extra['Vary']}"

    @property
    def bodiless(self) -> bool:
        """True if the status means that there is no body."""
        return self.status in _BODILESS

    def all_headers(self) -> dict[str, str]:
        """The headers of this answer, and those that every answer has."""
        headers = dict(self.headers)
        if not self.bodiless:
            headers["Content-Length"] = str(len(self.body))
        headers["Date"] = rfc822_formatted_time()
        headers["Server"] = SERVER
        return headers

    def head(self, version: HttpVersion, keep_alive: bool) -> bytes:
        """Status line and headers in HTTP/1. One header says whether the connection stays open."""
        is_old = version <= HttpVersion10
        text = _status_line(self.status, is_old)
        for name, value in self.headers.items():
            text += f"{name}: {value}\r\n"
        if self.status not in _BODILESS:
            text += f"Content-Length: {len(self.body)}\r\n"
        if keep_alive is is_old:
            text += f"Connection: {'keep-alive' if is_old else 'close'}\r\n"
        return f"{text}{_every_answer(rfc822_formatted_time())}\r\n".encode()


Response = Answer | web.StreamResponse


class Responder(Protocol):
    """Answers requests, and formats the answers that a connection gives by itself."""

    async def __call__(self, request: web.BaseRequest) -> Response:
        """Answer a request. Raises if the connection is lost or the request is cancelled."""

    def malformed(self, status: int, text: str) -> Answer:
        """The answer to bytes that are not an HTTP request."""

    def refusal(self, error: ZqError) -> Answer:
        """The answer to a connection before any request was read."""


def last_words(answer: Answer) -> bytes:
    """An answer as bytes of HTTP/1.1, for a connection on which no request was read."""
    headers = {**answer.all_headers(), "Connection": "close"}
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + answer.body


def what_is_wrong(status: int, exc: BaseException | None) -> tuple[int, str]:
    """The status and the text for bytes that aiohttp could not read as a request."""
    if isinstance(exc, LineTooLong):
        if MAX_REQUEST_LINE in (int(arg) for arg in exc.args if str(arg).isdigit()):
            return 414, f"the request line is longer than {MAX_HEADER_FIELD} bytes"
        return 431, f"a header is longer than {MAX_HEADER_FIELD} bytes"
    reason = str(getattr(exc, "message", "") or exc or "").partition("\n")[0].rstrip(":")
    if "Too many headers" in reason:
        return 431, f"more than {MAX_HEADERS} headers"
    if status >= 500:
        return 500, "internal server error"
    return 400, f"bad HTTP request: {reason.lower()}" if reason else "bad HTTP request"


@lru_cache(maxsize=128)
def _status_line(status: int, is_old: bool) -> str:
    return f"HTTP/1.{0 if is_old else 1} {status} {HTTPStatus(status).phrase}\r\n"


@lru_cache(maxsize=1)
def _every_answer(date: str) -> str:
    return f"Date: {date}\r\nServer: {SERVER}\r\n"
