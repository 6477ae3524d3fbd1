"""HTTP/1.1 as a proper client speaks it: one exchange after the other on a connection."""

import asyncio
import select
from collections.abc import AsyncIterator
from typing import cast

from .http2 import Broken


class Http1Connection(asyncio.Protocol):
    """A client's connection, and the exchange on it."""

    def __init__(self, host: str) -> None:
        self.lost = asyncio.Event()
        self._host = host
        self._buffer = bytearray()
        self._ended = False
        self._news = asyncio.Event()
        self._body: AsyncIterator[bytes] | None = None
        self._may_go_on = False
        self._method = ""
        self._transport: asyncio.Transport

    @property
    def is_free(self) -> bool:
        """Whether the next exchange may begin: this one has come to its end, and nobody hung up."""
        if not self._may_go_on or self._ended or self._transport.get_write_buffer_size():
            return False
        # What is there to read by now is the end.
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not poll.poll(0)

    def request(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None
    ) -> None:
        """Begin an exchange."""
        fields = {"host": self._host} | headers
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._may_go_on, self._body, self._method = False, None, method
        self._transport.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers, their names in lower case. Raises Broken."""
        first, *lines = (await self._upto(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        status = int(first.split(" ", 2)[1])
        self._body = self._read(status, headers)
        return status, headers

    async def raw_chunk(self) -> bytes:
        """The next data, however long it takes; empty at the end. Raises Broken."""
        assert self._body is not None
        return await anext(self._body, b"")

    async def body(self) -> bytes:
        """All data up to the end. Raises Broken."""
        assert self._body is not None
        return b"".join([data async for data in self._body])

    async def leave(self) -> None:
        """Hang up, unless the exchange has come to its end."""
        if not self._may_go_on:
            await self.close()

    async def close(self) -> None:
        self._transport.abort()
        await self.lost.wait()

    async def _read(self, status: int, headers: dict[str, str]) -> AsyncIterator[bytes]:
        if self._method == "HEAD" or status in (204, 304):
            pass
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(await self._upto(b"\r\n"), 16):
                yield await self._exactly(size)
                assert await self._upto(b"\r\n") == b""
            assert await self._upto(b"\r\n") == b""
        elif "content-length" in headers:
            if size := int(headers["content-length"]):
                yield await self._exactly(size)
        else:
            while not self._ended:
                await self._more()
            yield bytes(self._buffer)
        self._may_go_on = headers.get("connection") != "close"

    async def _upto(self, mark: bytes) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            await self._more()
        return self._cut(end, len(mark))

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._more()
        return self._cut(size, 0)

    def _cut(self, size: int, mark: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[: size + mark]
        return data

    async def _more(self) -> None:
        if self._ended:
            raise Broken("the connection is lost")
        self._news.clear()
        await self._news.wait()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._news.set()

    def eof_received(self) -> None:
        self._ended = True
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.eof_received()
        self.lost.set()


class Http1Pool:
    """The connections of one client."""

    def __init__(self) -> None:
        self._all: list[Http1Connection] = []

    async def ask(
        self,
        address: tuple[str, int],
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None,
    ) -> Http1Connection:
        """Begin an exchange. Raises `OSError` if there is nobody to connect to."""
        connection = next((each for each in self._all if each.is_free), None)
        if connection is None:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(
                lambda: Http1Connection("{}:{}".format(*address)), *address
            )
            self._all.append(connection)
        connection.request(method, target, headers, body)
        return connection

    async def close(self) -> None:
        for connection in self._all:
            await connection.close()
