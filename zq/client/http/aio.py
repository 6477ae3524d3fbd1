"""The asynchronous transport: open connections, one session for each event loop."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from zq.client.http.address import Address
from zq.client.http.transport import Bytes, Reply, Request

if TYPE_CHECKING:
    from zq.client.http.session import Session

_LEFT_TO_PARENTS: list[object] = []
"""Sessions from before a fork. Freeing one would take its sockets out of the parent's epoll."""


class _Opened(NamedTuple):
    """A session, and the generator that closes it when its event loop ends."""

    session: "Session"
    keeper: AsyncGenerator[None, None]


class AioTransport:
    """Opens a session with the first request in an event loop. It is closed with the loop, at the
    latest."""

    blocks = False

    def __init__(self, address: Address) -> None:
        self.url = address.url
        self._address = address
        self._sessions: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._pid = os.getpid()

    def __reduce__(self) -> tuple[type["AioTransport"], tuple[Address]]:
        return AioTransport, (self._address,)

    async def send(self, request: Request) -> Reply:
        """Send a request once. Raises `Unreachable`."""
        return await self._here().send(request)

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """Open a stream. Raises `Unreachable`, or the error of the server's refusal."""
        return await self._here().open(path, headers)

    async def sleep(self, seconds: float) -> None:
        """Wait for a time in seconds."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the session of this event loop. The next request opens another."""
        opened = self._sessions.pop(asyncio.get_running_loop(), None)
        if opened is not None and self._pid == os.getpid():
            await opened.keeper.aclose()

    def _here(self) -> "Session":
        if self._pid != os.getpid():
            _LEFT_TO_PARENTS.append(self._sessions)
            self._sessions, self._pid = {}, os.getpid()
        loop = asyncio.get_running_loop()
        opened = self._sessions.get(loop)
        if opened is None or opened.session.closed:
            opened = self._begin(loop)
        return opened.session

    def _begin(self, loop: asyncio.AbstractEventLoop) -> _Opened:
        # Programs without an event loop do not need aiohttp.
        from zq.client.http.session import Session

        for other in [other for other in self._sessions if other.is_closed()]:
            del self._sessions[other]
        session = Session(self._address)
        opened = self._sessions[loop] = _Opened(session, _keep(session))
        # An event loop closes the generators that have begun in it, before it ends. This one begins
        # without a wait.
        try:
            opened.keeper.asend(None).send(None)
        except StopIteration:
            return opened
        raise AssertionError("the generator waits before it yields")


async def _keep(session: "Session") -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()
