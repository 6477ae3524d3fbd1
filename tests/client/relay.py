"""A network that fails on command."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from conformance.site import Site


class Relay:
    """A way to the server that can be cut; connections through it are counted."""

    def __init__(self, port: int) -> None:
        self.opened = 0
        self.url = ""
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()

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

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, back}
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
