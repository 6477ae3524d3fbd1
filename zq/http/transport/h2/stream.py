"""One stream of HTTP/2: the body of its request, and its response."""

import asyncio
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.streams import StreamReader
from multidict import CIMultiDict

from zq.http.transport.answer import Answer
from zq.http.transport.channel import Peer
from zq.http.transport.h2.codec import Field
from zq.http.transport.h2.head import OF_CONNECTIONS
from zq.http.transport.h2.outlet import Outlet

_BODILESS = frozenset((str(HTTPStatus.NO_CONTENT.value), str(HTTPStatus.NOT_MODIFIED.value)))


_LOW_WATER = 2**16  # aiohttp's own throttle does nothing here: the windows bound what waits


_PART = 4096
"""Small parts of a body are gathered up to this size."""


class Body(StreamReader):
    """The body of a request. The peer may send more when the handler has read.

    It calls `acknowledge` with its stream, and with the bytes that were read or dropped.
    `announced` is the size that its request has announced, if any.
    """

    __slots__ = ("_acknowledge", "_announced", "_number", "_unread")

    def __init__(
        self,
        connection: Any,
        number: int,
        announced: int | None,
        acknowledge: Callable[[int, int], None],
    ) -> None:
        super().__init__(connection, _LOW_WATER)
        self._number = number
        self._announced = announced
        self._acknowledge = acknowledge
        self._unread = 0

    @property
    def is_whole(self) -> bool:
        """True if as many bytes have arrived as were announced, or their number was not."""
        return self._announced in (None, self.total_bytes)

    def receive(self, data: bytes, weight: int) -> None:
        """Take the data of a frame that weighs `weight` bytes in the window, padding included."""
        self._acknowledge(self._number, weight - len(data))
        self._unread += len(data)
        if self._buffer and data and len(self._buffer[-1]) + len(data) <= _PART:
            # Each part is an object: many tiny ones would take fifty times their bytes.
            self._buffer[-1] += data
            self._size += len(data)
            self.total_bytes += len(data)
        else:
            self.feed_data(data)

    def discard(self) -> None:
        """Drop all that is unread and all that comes: the handler reads no more."""
        self._acknowledge(self._number, self._unread)
        self._unread = 0

    def _read_nowait_chunk(self, n: int) -> bytes:
        data = super()._read_nowait_chunk(n)
        self._unread -= len(data)
        self._acknowledge(self._number, len(data))
        return data


class Http2Stream(AbstractStreamWriter):
    """A stream to which aiohttp writes a response, and the response's channel.

    A write returns once all of its bytes are on their way.
    """

    length: int | None = None
    streaming = False
    half_closed = False
    at_end: Callable[[], object] | None = None

    def __init__(
        self,
        number: int,
        outlet: Outlet,
        transport: asyncio.Transport,
        cut_off: Callable[["Http2Stream"], None],
    ) -> None:
        self.number = number
        self.rest = memoryview(b"")
        self.last = False
        self.bodiless = False
        """True if this is an answer to HEAD. Such an answer ends with its headers."""
        self.ended = False
        """True if END_STREAM has been sent."""
        self.gone = False
        """True if the stream was reset, or its connection was lost."""
        self._outlet = outlet
        self._transport = transport
        self._cut_off = cut_off
        self._head: list[Field] | None = None
        self._sent: asyncio.Future[None] | None = None
        self._moved = 0

    # Called by aiohttp to write

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        """Hold the head back until the first part of the body or the end is written."""
        await self._outlet.ready()
        status = status_line.split(" ", 2)[1]
        self.bodiless = self.bodiless or status in _BODILESS
        self._head = [(b":status", status.encode()), *_fields(headers.items())]

    def send_headers(self) -> None:
        """Send the head if it is still held back."""
        if self._head is not None:
            self._send_head(end=self.bodiless)

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Send a part of the body."""
        self.send_headers()
        if chunk and not self.bodiless:
            await self._send(chunk, last=False)

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Send the last part of the body. END_STREAM is sent even if that part is empty."""
        if self._head is not None and not chunk:
            self._send_head(end=True)
        else:
            self.send_headers()
            if not self.ended:
                await self._send(chunk, last=True)

    async def send(self, request: web.BaseRequest, answer: Answer) -> None:
        """Send a whole answer. Return when the windows and the transport have let it pass."""
        self._check()
        answer.sent = True
        await self._outlet.ready()
        self.bodiless = self.bodiless or answer.bodiless
        fields = _fields(answer.all_headers().items())
        self._head = [(b":status", b"%d" % answer.status), *fields]
        await self.write_eof(b"" if self.bodiless else answer.body)

    async def drain(self) -> None:
        """Do nothing, since `write` has waited already."""

    def enable_chunking(self) -> None:
        """Do nothing, since DATA frames need no chunks."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        """Do nothing, since zq does not compress answers."""
        raise NotImplementedError

    def _send_head(self, *, end: bool) -> None:
        self._check()
        assert self._head is not None
        head, self._head = self._head, None
        self.ended = end
        self._outlet.send_head(self.number, head, end=end)

    async def _send(self, data: bytes | bytearray | memoryview, *, last: bool) -> None:
        self._check()
        self.output_size += len(data)
        self.rest, self.last = memoryview(data), last
        if not self._outlet.send(self):
            self._sent = asyncio.get_running_loop().create_future()
            await self._sent
        self.ended = last

    def sent(self) -> None:
        """Wake the writer: the outlet has sent all that was written."""
        if self._sent is not None and not self._sent.done():
            self._sent.set_result(None)

    def _check(self) -> None:
        if self.gone:
            raise ConnectionResetError("the stream was reset")

    # The channel

    @property
    def transport(self) -> asyncio.Transport | None:
        return None if self.gone else self._transport

    def ask_for_body(self) -> None:
        self._outlet.send_head(self.number, [(b":status", b"100")], end=False)

    def unsent(self) -> int:
        return len(self.rest) + self._transport.get_write_buffer_size()

    def withheld(self) -> int:
        return len(self.rest)

    def moved(self) -> int:
        return self.output_size - len(self.rest)

    def cut_off(self, found: Peer) -> None:
        if found is Peer.WITHHOLDS:
            self._cut_off(self)
        else:
            self._transport.abort()


def _fields(headers: Iterable[tuple[str, str]]) -> list[Field]:
    fields: list[Field] = []
    for key, value in headers:
        name = key.lower()
        if name not in OF_CONNECTIONS:
            fields.append((name.encode(), value.encode("utf-8", "surrogateescape")))
    return fields
