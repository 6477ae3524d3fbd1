"""One HTTP/1.1 connection: aiohttp's protocol, our answers to bad HTTP, an eye on its end."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from zq.http.problems import answer
from zq.wire.codecs import JSON

log = logging.getLogger(__name__)

MAX_HEADER_FIELD = 64 * 1024
MAX_REQUEST_LINE = MAX_HEADER_FIELD + 1
"""One more than a header field, by which the parser's one exception tells the two apart."""
MAX_HEADERS = 100


class Connection(web.RequestHandler):
    """Serves one connection; `streaming` while a response goes on for as long as it lives."""

    streaming = False

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
