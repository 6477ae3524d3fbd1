"""The connections of gRPC: let in as those of HTTP are, and passed on to the library of gRPC.

The library knows neither the server's limits nor its certificates. So it listens on a socket in a
directory that is closed to other users, and each client's connection has one of its own to there.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from zq.http.transport.answer import Answer, last_words
from zq.http.transport.gate import peer_of
from zq.http.transport.h2.frames import PREFACE
from zq.http.transport.listener import FLUSH_S
from zq.http.transport.tls import client_name
from zq.model.errors import InvalidRequest, ServiceUnavailable, ZqError

log = logging.getLogger(__name__)

LIBRARY = "library"
"""The name of the socket on which the library listens."""


class RpcLinks:
    """All links, by the names that the library knows their clients by."""

    def __init__(self) -> None:
        self._temporary = TemporaryDirectory(prefix="zq-grpc-")
        self.directory = Path(self._temporary.name)
        self._numbers = itertools.count()
        self._links: dict[str, RpcLink] = {}
        self._all_over: asyncio.Event | None = None

    def serve(self, on_lost: Callable[[], object]) -> RpcLink:
        """The protocol of a connection that has begun to speak HTTP/2."""
        link = RpcLink(self.directory / str(next(self._numbers)), self.forget, on_lost)
        self._links[str(link.name)] = link
        return link

    def of(self, peer: str) -> RpcLink:
        """The link of the client that the library calls `peer`."""
        link = self._links.get(peer.removeprefix("unix:"))
        if link is None:
            raise ServiceUnavailable("the connection of this call has ended")
        return link

    def forget(self, link: RpcLink) -> None:
        """A link has ended."""
        del self._links[str(link.name)]
        if self._all_over is not None and not self._links:
            self._all_over.set()

    async def close(self) -> None:
        """End the links that the library has not ended, and remove the directory."""
        self._all_over = asyncio.Event()
        if self._links:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._all_over.wait()
        for link in list(self._links.values()):
            link.abort()
        self._temporary.cleanup()


class _Joined(asyncio.Protocol):
    """One side of a link: what comes here goes out on the other side."""

    transport: asyncio.Transport
    other: _Joined

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.other.transport.close()


class RpcLink(_Joined):
    """A client's connection, joined to one to the library. `name` is the file of the latter."""

    def __init__(
        self, name: Path, forget: Callable[[RpcLink], object], on_lost: Callable[[], object]
    ) -> None:
        self.name = name
        self.peer = ""
        """The address of the client, as the gate knows it."""
        self.certified: str | None = None
        """The common name in the client's certificate."""
        self._forget = forget
        self._on_lost = on_lost
        self._calls = 0
        self._begun = PREFACE
        self._joining: asyncio.Task[None]

    @property
    def is_idle(self) -> bool:
        """No call is under way."""
        return not self._calls

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """One more call is under way within the block."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    def abort(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peer, self.certified = peer_of(transport), client_name(transport)
        self._joining = asyncio.ensure_future(self._join())

    def data_received(self, data: bytes) -> None:
        if self._joining.done():
            super().data_received(data)
            return
        self._begun += data
        self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget(self)
        self._on_lost()
        if not self._joining.done():
            self._joining.cancel()
        elif not self._joining.cancelled() and self._joining.exception() is None:
            super().connection_lost(exc)

    async def _join(self) -> None:
        """Open the other side, and send there what has come so far. If that fails, end this one."""
        self.other = _Joined()
        self.other.other = self
        try:
            near = self._near_end()
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: self.other, sock=near)
        except BaseException as error:
            if isinstance(error, OSError):
                fields = {"peer": self.peer, "error": str(error)}
                log.warning("a gRPC connection was not passed on", extra={"fields": fields})
            self.abort()
            raise
        self.other.transport.write(self._begun)
        self._begun = b""
        self.transport.resume_reading()

    def _near_end(self) -> socket.socket:
        """A socket of this link's name, connected to the library. Raises OSError."""
        near = socket.socket(socket.AF_UNIX)
        try:
            near.setblocking(False)
            near.bind(str(self.name))
            near.connect(str(self.name.with_name(LIBRARY)))
        except OSError:
            near.close()
            raise
        finally:
            # The library has the name from the socket. Nothing looks for the file.
            self.name.unlink(missing_ok=True)
        return near


class RefusedConnection(asyncio.Protocol):
    """Answers a client that does not speak HTTP/2 in HTTP/1.1, and closes."""

    def __init__(self, word: Callable[[ZqError], Answer], on_lost: Callable[[], object]) -> None:
        self._word = word
        self._on_lost = on_lost
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        error = InvalidRequest("this port speaks gRPC only: send other requests to the one of HTTP")
        self._transport.write(last_words(self._word(error)))
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()

    @property
    def is_idle(self) -> bool:
        """True if the connection has no call under way."""
        return True

    def abort(self) -> None:
        self._transport.abort()
