"""HTTP/2 by the h2 library: many exchanges on one connection, each read as the test likes."""

import asyncio
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Self, cast

import httpx
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes, Settings
from hpack import Encoder

from .streams import PATIENCE_S

Headers = list[tuple[str, str]]

WINDOW = 2**24


class Broken(httpx.ReadError, ConnectionError):
    """The stream was reset, or its connection lost."""


class PlainWhereLong(Encoder):
    """Leaves long texts as they are: hpack takes the square of their length to code them."""

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        fields = list(headers)
        return super().encode(fields, huffman and all(len(value) < 4096 for _, value in fields))


class Exchange:
    """One stream. Its window opens as far as the test reads."""

    def __init__(self, connection: "Http2Connection", number: int) -> None:
        self.number = number
        self.error_code: int | None = None
        """Of the server's RST_STREAM."""
        self.received_bytes = 0
        self._connection = connection
        self._head: asyncio.Future[Headers] = asyncio.get_running_loop().create_future()
        self._data: asyncio.Queue[tuple[bytes, int] | None | Broken] = asyncio.Queue()

    def received(self, item: Headers | tuple[bytes, int] | None | Broken) -> None:
        """Headers, data with its weight in the window, the end (None), or a bad end."""
        if isinstance(item, list):
            self._head.set_result(item)
            return
        if isinstance(item, Broken) and not self._head.done():
            self._head.set_exception(item)
            self._head.exception()  # a test need not wait for the head
        if isinstance(item, tuple):
            self.received_bytes += len(item[0])
        self._data.put_nowait(item)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers. Raises Broken."""
        async with asyncio.timeout(PATIENCE_S):
            head = dict(await asyncio.shield(self._head))
        return int(head.pop(":status")), head

    async def raw_chunk(self) -> bytes:
        """The next data, however long it takes; empty at the end. Raises Broken."""
        item = await self._data.get()
        if isinstance(item, Broken):
            raise item
        if item is None:
            return b""
        data, weight = item
        self._connection.acknowledge(self.number, weight)
        return data

    async def chunk(self) -> bytes:
        """The next data, which must come; empty at the end. Raises Broken."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.raw_chunk()

    async def body(self) -> bytes:
        """All data up to the end. Raises Broken."""
        body = bytearray()
        while data := await self.chunk():
            body += data
        return bytes(body)

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """Send some of the body as the windows allow."""
        await self._connection.send_data(self.number, data, end)

    def cancel(self) -> None:
        """Reset the stream, as a client that wants no more of it does."""
        self._connection.cancel(self.number)

    async def leave(self) -> None:
        """Want no more of it, if there is more."""
        self.cancel()


class Http2Connection(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, window: int = WINDOW) -> None:
        self.terminated: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The error code of the server's GOAWAY."""
        self.lost = asyncio.Event()
        self._frames = H2Connection(H2Configuration(header_encoding="utf-8"))
        self._frames.encoder = PlainWhereLong()
        self._frames.local_settings = Settings(
            client=True, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
        self._window = window
        self._exchanges: dict[int, Exchange] = {}
        self._news = asyncio.Event()
        self._transport: asyncio.Transport

    @classmethod
    async def open(
        cls, port: int, *, window: int = WINDOW, receive_buffer: int | None = None
    ) -> Self:
        """`window` is what each stream may send unread, `receive_buffer` the kernel's buffer."""
        # asyncio sets TCP_NODELAY where the protocol is named; without it a body waits for 40 ms.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setblocking(False)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(sock, ("127.0.0.1", port))
        except ConnectionError:
            sock.close()
            raise
        _, connection = await loop.create_connection(lambda: cls(window), sock=sock)
        return connection

    def request(
        self, method: str, target: str, headers: Iterable[tuple[str, str]], *, end: bool
    ) -> Exchange:
        """Begin an exchange; `end` says that no body follows."""
        if self.lost.is_set():
            raise Broken("the connection is lost")
        number = self._frames.get_next_available_stream_id()
        head = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "localhost"),
            (":path", target),
        ]
        self._frames.send_headers(number, head + list(headers), end_stream=end)
        exchange = self._exchanges[number] = Exchange(self, number)
        self._flush()
        return exchange

    async def send_data(self, number: int, data: bytes, end: bool) -> None:
        rest = memoryview(data)
        while rest or end:
            if number not in self._exchanges:
                return  # answered and reset: nobody wants the rest
            window = self._frames.local_flow_control_window(number)
            size = min(window, len(rest), self._frames.max_outbound_frame_size)
            if size <= 0 < len(rest):
                self._news.clear()
                async with asyncio.timeout(PATIENCE_S):
                    await self._news.wait()
                continue
            part, rest = rest[:size], rest[size:]
            self._frames.send_data(number, bytes(part), end_stream=end and not rest)
            self._flush()
            if not rest:
                return

    def acknowledge(self, number: int, weight: int) -> None:
        if weight and not self.lost.is_set():
            self._frames.acknowledge_received_data(weight, number)
            self._flush()

    def cancel(self, number: int) -> None:
        if self._exchanges.pop(number, None) is not None and not self.lost.is_set():
            self._frames.reset_stream(number, ErrorCodes.CANCEL)
            self._flush()

    # How it ends

    def half_close(self) -> None:
        """Send nothing more, go on reading."""
        self._transport.write_eof()

    async def reset(self) -> None:
        """Break the connection off with an RST, as a crashed peer's kernel would."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def close(self) -> None:
        self._transport.close()
        await self.lost.wait()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._frames.initiate_connection()
        self._frames.increment_flow_control_window(2**30)
        self._flush()

    def data_received(self, data: bytes) -> None:
        for event in self._frames.receive_data(data):
            match event:
                case ResponseReceived():
                    head = [(str(name), str(value)) for name, value in event.headers]
                    self._tell(event.stream_id, head)
                case DataReceived():
                    self._tell(event.stream_id, (event.data, event.flow_controlled_length))
                case StreamEnded():
                    self._tell(event.stream_id, None)
                    self._exchanges.pop(event.stream_id, None)
                case StreamReset():
                    if exchange := self._exchanges.pop(event.stream_id, None):
                        exchange.error_code = event.error_code
                        exchange.received(Broken(f"reset: {event.error_code}"))
                case ConnectionTerminated() if not self.terminated.done():
                    self.terminated.set_result(int(event.error_code or 0))
        self._news.set()  # it may have opened a window
        self._flush()

    def _tell(self, number: int, item: Headers | tuple[bytes, int] | None) -> None:
        if exchange := self._exchanges.get(number):
            exchange.received(item)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        self._news.set()
        for exchange in self._exchanges.values():
            exchange.received(Broken("the connection is lost"))
        self._exchanges.clear()

    def _flush(self) -> None:
        with suppress(RuntimeError):  # half closed
            self._transport.write(self._frames.data_to_send())


class Http2Pool:
    """The one connection of a client, made anew once it is lost."""

    def __init__(self) -> None:
        self._connection: Http2Connection | None = None
        self._connecting = asyncio.Lock()

    async def ask(
        self,
        address: tuple[str, int],
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None,
    ) -> Exchange:
        """Send a request. Raises `OSError` if there is nobody to connect to, or Broken."""
        connection = await self._connect(address[1])
        fields = [(name, value) for name, value in headers.items() if name != "host"]
        exchange = connection.request(method, target, fields, end=not body)
        if body:
            try:
                await exchange.send(body, end=True)
            except asyncio.CancelledError:
                exchange.cancel()
                raise
        return exchange

    async def _connect(self, port: int) -> Http2Connection:
        async with self._connecting:
            connection = self._connection
            if connection is None or connection.lost.is_set() or connection.terminated.done():
                connection = self._connection = await Http2Connection.open(port)
            return connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
