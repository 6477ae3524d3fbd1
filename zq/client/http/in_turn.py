"""Several servers that have the same jobs, such as those that share a database: one is asked."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from zq.client.http.transport import Bytes, Reply, Request, Transport, Unreachable

T = TypeVar("T")


class InTurn:
    """The transport to one of several servers until it does not answer, and then to the next one.

    What a server has not seen goes to the next one at once. Otherwise it fails here as well, and
    whoever may send it again sends it to the next one.
    """

    def __init__(self, transports: Sequence[Transport]) -> None:
        self._transports = transports
        self._place = 0

    @property
    def url(self) -> str:
        """The address of the server that is asked now."""
        return self._transports[self._place].url

    @property
    def blocks(self) -> bool:
        """True if coroutines never suspend."""
        return self._transports[0].blocks

    async def send(self, request: Request) -> Reply:
        """Send a request once. Raises `Unreachable`."""
        return await self._asked(lambda transport: transport.send(request))

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """Open a stream. Raises `Unreachable`, or the error of the server's refusal."""
        return await self._asked(lambda transport: transport.open(path, headers))

    async def sleep(self, seconds: float) -> None:
        """Wait for a time in seconds."""
        await self._transports[0].sleep(seconds)

    async def close(self) -> None:
        """Close the connections. The next request opens others."""
        for transport in self._transports:
            await transport.close()

    async def _asked(self, ask: Callable[[Transport], Awaitable[T]]) -> T:
        for tries_left in reversed(range(len(self._transports))):
            place = self._place
            try:
                return await ask(self._transports[place])
            except Unreachable as error:
                # Another request may have turned to the next one already.
                if self._place == place:
                    self._place = (place + 1) % len(self._transports)
                if error.sent or not tries_left:
                    raise
        raise AssertionError("there is no server")
