"""One HTTP/1.1 connection: aiohttp's protocol, our answers to bad HTTP, an eye on its end."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from zq.http.channel import Channel, Peer
from zq.http.gate import Gate
from zq.http.problems import answer, last_words
from zq.model.clock import Clock, Timer
from zq.wire.codecs import JSON

log = logging.getLogger(__name__)

MAX_HEADER_FIELD = 64 * 1024
MAX_REQUEST_LINE = MAX_HEADER_FIELD + 1
"""One more than a header field, by which the parser's one exception tells the two apart."""
MAX_HEADERS = 100


class Connection(web.RequestHandler):
    """Serves one connection, and is the channel of the one response that it sends at a time.

    A header has `header_timeout` seconds, from the connection's beginning or from the header's. A
    connection that is kept alive may rest between two requests for as long as aiohttp has it, which
    is an hour. `on_lost` is called once it is gone.
    """

    streaming = False

    def __init__(
        self,
        manager: web.Server,
        gate: Gate,
        clock: Clock,
        header_timeout: float,
        on_lost: Callable[[], object],
        **options: Any,
    ) -> None:
        super().__init__(manager, **options)
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._on_lost = on_lost
        self._header_timer: Timer | None = None
        self._header_begun = False

    def channel(self, request: web.BaseRequest) -> Channel:
        """This connection: its requests are answered one after the other."""
        return self

    def ask_for_body(self) -> None:
        if self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def withheld(self) -> int:
        return 0

    def moved(self) -> int:
        return 0

    def cut_off(self, found: Peer) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serve the connection."""
        super().connection_made(transport)
        self._expect_header()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for another one."""
        self._header_arrived()
        self._on_lost()
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

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on where reading was paused.

        aiohttp calls this after every part of a body that is read, and would run its parser over
        nothing each time.
        """
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def _expect_header(self) -> None:
        self._header_timer = self._clock.call_later(self._header_timeout, self._give_up)

    def _header_arrived(self) -> None:
        self._header_begun = False
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        error = self._gate.too_slow()
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
