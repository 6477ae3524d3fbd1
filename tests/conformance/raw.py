"""HTTP/1.1 by hand, for requests that a proper client would never send."""

import asyncio
import json
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from .streams import PATIENCE_S


@dataclass(frozen=True)
class RawReply:
    """An answer as it stood on the socket. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def doc(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)


class RawConnection:
    """One TCP connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._size: int | None = None
        """The size of a chunk that has begun and is not read."""

    @classmethod
    async def open(
        cls, port: int, receive_buffer: int | None = None, source: str = "127.0.0.1"
    ) -> Self:
        """`receive_buffer` (bytes) fixes the kernel's buffer, so that an idle reader fills it.

        `source` is the address to come from: any in 127.0.0.0/8.
        """
        # asyncio sets TCP_NODELAY where the protocol is named; without it a body waits for 40 ms.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.bind((source, 0))
        sock.setblocking(False)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        except OSError:
            sock.close()
            raise
        # asyncio stops reading once a small buffer of its own is full: an unread stream stalls.
        return cls(*await asyncio.open_connection(sock=sock, limit=4096))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next answer; its body stays unread."""
        _, status, *_ = (await self._line()).split(b" ", 2)
        headers = {}
        while line := await self._line():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(status), headers

    async def reply(self, *, to_head: bool = False) -> RawReply:
        """The next answer with its body. `to_head`: it answers a HEAD request and has none."""
        status, headers = await self.head()
        if to_head or status in (100, 204):
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = await self._chunks()
        elif "content-length" in headers:
            body = await self.read(int(headers["content-length"]))
        else:
            body = await self.rest()
        return RawReply(status, headers, body)

    async def _line(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            line = await self._reader.readuntil(b"\r\n")
        return line.removesuffix(b"\r\n")

    async def read(self, size: int) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.readexactly(size)

    async def chunk(self) -> bytes:
        """The next chunk of a chunked body; empty at its end."""
        await self.begun()
        assert self._size is not None
        data = await self.read(self._size)
        assert await self._line() == b""
        self._size = None
        return data

    async def begun(self) -> None:
        """Wait until the next chunk arrives, and read nothing of its data."""
        if self._size is None:
            self._size = int(await self._line(), 16)

    async def _chunks(self) -> bytes:
        body = b""
        while data := await self.chunk():
            body += data
        return body

    async def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.read()

    def half_close(self) -> None:
        """Send nothing more, go on reading."""
        self._writer.write_eof()

    async def reset(self) -> None:
        """Break the connection off with an RST, as a crashed peer's kernel would."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.close()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):  # the server may have been quicker
            await self._writer.wait_closed()


async def exchange(port: int, request: bytes) -> RawReply:
    """Send these bytes on a connection of their own and read one answer."""
    async with await RawConnection.open(port) as connection:
        await connection.send(request)
        return await connection.reply()
