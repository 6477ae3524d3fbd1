"""One HTTP/1.1 connection: aiohttp's protocol, our answers to bad HTTP, an eye on its end."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from zq.http.gate import Gate, peer_of
from zq.http.problems import answer, last_words
from zq.model.clock import Clock, Timer
from zq.model.errors import HeaderTimeout
from zq.wire.codecs import JSON

log = logging.getLogger(__name__)

MAX_HEADER_FIELD = 64 * 1024
MAX_REQUEST_LINE = MAX_HEADER_FIELD + 1
"""One more than a header field, by which the parser's one exception tells the two apart."""
MAX_HEADERS = 100


class Connection(web.RequestHandler):
    """Serves one connection; `streaming` while a response goes on for as long as it lives.

    A header has `header_timeout` seconds, from the connection's beginning or from the header's. A
    connection that is kept alive may rest between two requests for as long as aiohttp has it, which
    is an hour.
    """

    streaming = False

    def __init__(
        self, manager: web.Server, gate: Gate, clock: Clock, header_timeout: float, **options: Any
    ) -> None:
        super().__init__(manager, **options)
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._header_timer: Timer | None = None
        self._header_begun = False
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serve the connection, or turn it away if there are too many."""
        self._peer = peer_of(transport)
        if not self._gate.enter(self._peer):
            self._gate.turn_away(cast(asyncio.Transport, transport), self._peer)
            return
        super().connection_made(transport)
        self._expect_header()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for another one."""
        self._header_arrived()
        self._gate.leave(self._peer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what comes, and see that each header is whole in time."""
        # aiohttp has no public word for how many headers it has read, and for being idle.
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self._header_arrived()
        elif self._header_timer is not None or self._waiter is not None:
            self._header_begun = True
            if self._header_timer is None:
                self._expect_header()

    def _expect_header(self) -> None:
        self._header_timer = self._clock.call_later(self._header_timeout, self._give_up)

    def _header_arrived(self) -> None:
        self._header_begun = False
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        error = HeaderTimeout("the header took too long to arrive (--header-timeout)")
        self._gate.refused[error.code] += 1
        # Who has said nothing at all expects no answer.
        if self._header_begun and self.transport is not None:
            self.transport.write(last_words(error))
        self.force_close()

    def eof_received(self) -> None:
        """The peer has finished sending. A stream ends with that, unsent bytes or not."""
        if self.streaming and self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP as errors are answered, and close."""
        status, text = _describe(status, exc)
        log.debug("bad request", extra={"fields": {"status": status, "error": text}})
        response = answer({"error": text}, JSON, status, {"Connection": "close"})
        response.force_close()
        return response


@contextlib.contextmanager
def watch_for_end(request: web.BaseRequest) -> Iterator[None]:
    """While a stream is written, let its peer's half-close end it like a full one."""
    protocol: Any = request.protocol
    protocol.streaming = True
    try:
        yield
    finally:
        protocol.streaming = False


def _describe(status: int, exc: BaseException | None) -> tuple[int, str]:
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
