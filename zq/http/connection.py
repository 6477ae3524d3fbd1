"""One HTTP/1.1 connection: aiohttp's protocol, our answers to bad HTTP, an eye on its end."""

import logging

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from zq.http.channel import Channel, Peer
from zq.http.problems import answer
from zq.wire.codecs import JSON

log = logging.getLogger(__name__)

MAX_HEADER_FIELD = 64 * 1024
MAX_REQUEST_LINE = MAX_HEADER_FIELD + 1
"""One more than a header field, by which the parser's one exception tells the two apart."""
MAX_HEADERS = 100


class Connection(web.RequestHandler):
    """Serves one connection, and is the channel of the one response that it sends at a time."""

    streaming = False

    def channel(self, request: web.BaseRequest) -> Channel:
        """This connection: its requests are answered one after the other."""
        return self

    def unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def withheld(self) -> int:
        return 0

    def moved(self) -> int:
        return 0

    def cut_off(self, found: Peer) -> None:
        if self.transport is not None:
            self.transport.abort()

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
