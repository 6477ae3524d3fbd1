"""A network that fails on command."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from conformance.site import Site

Fault = Literal["refused", "answered", "lost", "silent"]
"""What may come of a request: a proxy refuses it, or answers it with a page; its answer is lost, or
nobody gets it. After the last two, its connection is silent until it is broken."""

_FOREIGN: dict[Fault, bytes] = {
    "refused": b"HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\n404 page not found",
    "answered": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nback soon",
}


class Relay:
    """A way to the server that can be cut; connections through it are counted."""

    def __init__(self, port: int) -> None:
        self.opened = 0
        self.url = ""
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._faults: list[tuple[str, Fault, asyncio.Event]] = []
        self._silent: dict[asyncio.StreamWriter, asyncio.Event] = {}

    @classmethod
    @asynccontextmanager
    async def to(cls, site: Site) -> AsyncIterator["Relay"]:
        relay = cls(site.port)
        server = await asyncio.start_server(relay._relay, "127.0.0.1", 0)
        relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield relay
        finally:
            server.close()
            relay.cut()

    def cut(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()

    def hang_up(self) -> None:
        """Break the connections that are silent since something went wrong."""
        for writer in self._silent:
            writer.transport.abort()

    def fail(self, what: str, fault: Fault) -> asyncio.Event:
        """Let the next request go wrong whose first line has this in it. The event tells when it
        has."""
        happened = asyncio.Event()
        self._faults.append((what, fault, happened))
        return happened

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, back}
        await asyncio.gather(self._pump(reader, back, writer), self._pump(there, writer))

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asker: asyncio.StreamWriter | None = None,
    ) -> None:
        """Pass bytes on. Requests have an `asker`, who gets the answers."""
        try:
            while data := await reader.read(65_536):
                if asker is not None and not self._passes(data, asker):
                    continue
                if asker is None and (lost := self._silent.get(writer)):
                    lost.set()
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    def _passes(self, request: bytes, asker: asyncio.StreamWriter) -> bool:
        """Whether the server gets a request."""
        line = request.partition(b"\r\n")[0].decode()
        for each in self._faults:
            what, fault, happened = each
            if what not in line:
                continue
            self._faults.remove(each)
            if fault in _FOREIGN:
                asker.write(_FOREIGN[fault])
            else:
                self._silent[asker] = happened
            if fault != "lost":
                happened.set()
            return fault == "lost"
        return True
