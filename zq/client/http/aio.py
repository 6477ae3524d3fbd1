"""The asynchronous transport: open connections, one session for each event loop."""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from zq.client.http.address import Address
from zq.client.http.transport import Bytes, Reply, Request

if TYPE_CHECKING:
    from zq.client.http.session import Session

_LEFT_TO_PARENTS: list[object] = []
"""Sessions from before a fork. Freeing one would take its sockets out of the parent's epoll."""


class AioTransport:
    """Opens its session with the first request, and a new one in another event loop or process."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._session: Session | None = None
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_address": self._address, "_session": None, "_home": None}

    async def send(self, request: Request) -> Reply:
        """Send a request once. Raises `Unreachable`."""
        return await self._here().send(request)

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """Open a stream. Raises `Unreachable`, or the error of the server's refusal."""
        return await self._here().open(path, headers)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the session. The next request opens another."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _here(self) -> "Session":
        home = (os.getpid(), asyncio.get_running_loop())
        if self._home is not None and self._home[0] != os.getpid():
            _LEFT_TO_PARENTS.append(self._session)
            self._session = None
        if self._session is None or self._session.closed or self._home != home:
            # Programs without an event loop do not need aiohttp.
            from zq.client.http.session import Session

            self._session, self._home = Session(self._address), home
        return self._session
