"""One whole answer, and the bytes that HTTP/1.1 begins it with."""

from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus

from aiohttp import web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion10

SERVER = "zq"
"""What answers call the server; its version is nobody's business but a key holder's."""

SMALL = 64 * 1024
"""Bytes of an answer that is never refused, and of a part of a larger one: as much as a connection
of HTTP/1.1 may have unsent before it takes the next request, so that no answers pile up there."""

_BODILESS = frozenset((HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED))
_NOTHING: Mapping[str, str] = {}


class Answer:
    """A status, headers and a body. The connection adds what every answer has.

    aiohttp's response costs three times as much to make and to write: it is ready for cookies,
    compression and bodies of any kind. Streams are aiohttp's.
    """

    __slots__ = ("body", "closes", "headers", "sent", "status")

    def __init__(
        self, status: int = 200, body: bytes = b"", headers: Mapping[str, str] = _NOTHING
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.closes = False
        """Whether the connection ends with it."""
        self.sent = False

    @property
    def bodiless(self) -> bool:
        """Whether its status says that there is no body."""
        return self.status in _BODILESS

    def all_headers(self) -> dict[str, str]:
        """Its headers and those that every answer has."""
        headers = dict(self.headers)
        if not self.bodiless:
            headers["Content-Length"] = str(len(self.body))
        headers["Date"] = rfc822_formatted_time()
        headers["Server"] = SERVER
        return headers

    def keeps_alive(self, request: web.BaseRequest) -> bool:
        """Whether the connection goes on after this answer to a request."""
        return not self.closes and request.keep_alive

    def head(self, request: web.BaseRequest) -> bytes:
        """Status line and headers of the answer to a request of HTTP/1."""
        is_old = request.version <= HttpVersion10
        line = _status_line(self.status, is_old)
        headers = [f"{name}: {value}\r\n" for name, value in self.headers.items()]
        length = "" if self.bodiless else f"Content-Length: {len(self.body)}\r\n"
        connection = ""
        if self.keeps_alive(request) is is_old:
            connection = f"Connection: {'keep-alive' if is_old else 'close'}\r\n"
        rest = f"{length}{connection}{_every_answer(rfc822_formatted_time())}"
        return f"{line}{''.join(headers)}{rest}\r\n".encode()


@lru_cache(maxsize=128)
def _status_line(status: int, is_old: bool) -> str:
    return f"HTTP/1.{0 if is_old else 1} {status} {HTTPStatus(status).phrase}\r\n"


@lru_cache(maxsize=1)
def _every_answer(date: str) -> str:
    return f"Date: {date}\r\nServer: {SERVER}\r\n"
