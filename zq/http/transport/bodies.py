"""Request bodies: limits on the size and the time of one, and on the memory of all together."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, cast

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion10
from aiohttp.streams import StreamReader

from zq.http.transport.channel import channel_of
from zq.model.clock import Clock, Timer
from zq.model.errors import BodyTimeout, InboxFull, TooLarge, ZqError

RESERVE = 4
"""A quarter more than the bound is reserved for requests other than enqueues: acknowledgements get
through."""

LEAST_RATE = 1024
"""A body that arrives at this many bytes a second never runs out of time: a slow line is not an
attack."""

PART = 256 * 1024
"""The most bytes of a body that are copied in one go."""

_PLAIN_CODINGS = {"identity", "chunked"}


class UnsupportedCoding(ZqError):
    """The body is compressed, and the request takes none that is: it would have two sizes."""

    code = "unsupported_media_type"


class Bodies:
    """Counts the bytes of each body from its announcement to the end of its request."""

    def __init__(self, max_body: int, max_bytes: int, timeout: float, clock: Clock) -> None:
        """`timeout` is in seconds."""
        self.held = 0
        self._max_body = max_body
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._clock = clock

    async def read(self, request: web.BaseRequest, *, reserved: bool, coded: bool = False) -> bytes:
        """The whole body. The caller releases its bytes with `release`.

        One of more than `PART` bytes is a `bytearray`, which is read as bytes are.

        A `reserved` body may use the reserve too. A client that waits for permission to send gets
        it, unless the body would be refused anyway. With `coded`, the caller decodes the content
        itself, and tells its new size by `grow`. Raises `UnsupportedCoding`, `TooLarge`,
        `InboxFull` or `BodyTimeout` as soon as one applies.
        """
        headers = request.headers
        if hdrs.CONTENT_ENCODING in headers or hdrs.TRANSFER_ENCODING in headers:
            _refuse_codings(request, coded)
        content = request.content
        if content.is_eof():
            body = content.read_nowait()
            self._take(len(body), 0, reserved)
            return body
        if is_withheld(request):
            self._check(request.content_length or 0, 0, reserved)
            channel_of(request).ask_for_body()
        with _InTime(content, self._clock, self._timeout):
            return await self._read(content, request.content_length, reserved)

    def grow(self, more: int, have: int, *, reserved: bool) -> None:
        """Count `more` bytes of a body of which `have` bytes are known. Raises as `read` does."""
        self._take(more, have, reserved)

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Count `size` more bytes within the block: copies of a body that was let in."""
        self.held += size
        try:
            yield
        finally:
            self.held -= size

    @contextmanager
    def counting(self, size: int, *, reserved: bool) -> Iterator[None]:
        """Count a body within the block that has arrived by other ways. Raises as `read` does."""
        self._take(size, 0, reserved)
        try:
            yield
        finally:
            self.release(size)

    def release(self, size: int) -> None:
        """A request that held `size` bytes is done."""
        self.held -= size

    async def _read(self, content: StreamReader, announced: int | None, reserved: bool) -> bytes:
        """Read a body that is under way. A body of unknown length is counted as it arrives."""
        held = announced or 0
        self._take(held, 0, reserved)
        # The whole body is wanted at once: aiohttp need not pause between parts.
        content.set_read_chunk_size(self._max_body)
        # Parts that are joined at the end would be in memory twice, and hold the loop meanwhile.
        body = bytearray()
        try:
            while part := await content.read(PART):
                body += part
                if len(body) > held:
                    self._take(len(body) - held, held, reserved)
                    held = len(body)
        except BaseException:
            self.release(held)
            raise
        return bytes(body) if len(body) <= PART else cast(bytes, body)

    def _take(self, more: int, have: int, reserved: bool) -> None:
        self._check(more, have, reserved)
        self.held += more

    def _check(self, more: int, have: int, reserved: bool) -> None:
        if have + more > self._max_body:
            raise TooLarge(
                f"the body is larger than {self._max_body} bytes: send fewer jobs a request, or"
                " raise --max-body"
            )
        bound = self._max_bytes + (self._max_bytes // RESERVE if reserved else 0)
        # A single body within --max-body always has a chance, however small the bound is.
        if self.held and self.held + more > bound:
            raise InboxFull(
                "the requests under way hold as much memory as they may: try again shortly, or"
                " raise --max-inbox-bytes"
            )


def _refuse_codings(request: web.BaseRequest, coded: bool) -> None:
    """Raise `UnsupportedCoding` for a body that is compressed or otherwise coded.

    RFC 9112 (6.1) advises 501 for an unknown transfer coding. But clients repeat a request after a
    5xx, and repeating this one cannot help.
    """
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity")
    if not coded and encoding.lower() != "identity":
        raise UnsupportedCoding(
            f"unsupported content encoding {encoding!r}: send the body uncompressed"
        )
    codings = request.headers.get(hdrs.TRANSFER_ENCODING, "chunked")
    if not {coding.strip().lower() for coding in codings.split(",")} <= _PLAIN_CODINGS:
        raise UnsupportedCoding(
            f"unsupported transfer coding {codings!r}: send the body chunked and nothing else, or"
            " with its Content-Length"
        )


class _InTime:
    """Raises a `BodyTimeout` in the reader of a body that takes too long.

    It drops its references at its end. Otherwise the request and its answer would stay in memory
    until the garbage collector runs, and that is seldom.
    """

    def __init__(self, content: StreamReader, clock: Clock, timeout: float) -> None:
        self._content = content
        self._clock = clock
        self._timeout = timeout
        self._began = clock.monotonic()
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        self._timer = self._clock.call_later(self._timeout, self._check_time)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_time(self) -> None:
        patience = self._timeout + self._content.total_bytes / LEAST_RATE
        left = self._began + patience - self._clock.monotonic()
        if left > 0:
            self._timer = self._clock.call_later(left, self._check_time)
        else:
            self._content.set_exception(
                BodyTimeout(
                    "the body took too long to arrive: send it again, over a better line in smaller"
                    " parts, or raise --body-timeout"
                )
            )


def is_withheld(request: web.BaseRequest) -> bool:
    """True if the client waits for permission to send the body, or the rest of it.

    A client of HTTP/1.0 may say that it waits, but it would take the permission for the answer.
    """
    expected = request.headers.get(hdrs.EXPECT)
    if expected is None or request.version == HttpVersion10:
        return False
    return expected.lower() == "100-continue" and not request.content.is_eof()
