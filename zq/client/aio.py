"""The asynchronous transport: aiohttp, connections kept open, one session an event loop."""

import asyncio
import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from zq.client.transport import Address, Bytes, Reply, Request, Unreachable, unreachable

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

SILENCE_S = 30.0
"""A stream that is silent for so long is broken: servers send a heartbeat every few seconds."""

CONNECT_S = 10.0
READ_BUFFER = 2**18
KEEP_ALIVE_S = 60.0

LARGE = 2**20
"""Bytes of a body above which aiohttp wants a file, to write it in parts."""


_LEFT_TO_PARENTS: list[object] = []
"""Sessions from before a fork. Collecting one would take its sockets out of the parent's epoll."""


class AioTransport:
    """Opens its session with the first request, and a new one in another event loop or process."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._session: aiohttp.ClientSession | None = None
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_address": self._address, "_session": None, "_home": None}

    async def send(self, request: Request) -> Reply:
        """One try. Raises `Unreachable`."""
        import aiohttp

        body: bytes | io.BytesIO | None = request.body
        if request.body is not None and len(request.body) > LARGE:
            body = io.BytesIO(request.body)
        headers = {} if request.body is None else {"Content-Type": self._address.codec.content_type}
        timeout = aiohttp.ClientTimeout(total=request.timeout, connect=CONNECT_S)
        try:
            async with self._open_session().request(
                request.method,
                self._url(request.path),
                data=body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error
        lowered = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, lowered, answer)

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """A stream. Raises `Unreachable`, or what the server refuses with."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=SILENCE_S)
        try:
            response = await self._open_session().request(
                "GET", self._url(path), headers=headers, timeout=timeout, allow_redirects=False
            )
            if response.status != 200:
                body = await response.read()
                lowered = {name.lower(): value for name, value in response.headers.items()}
                raise Reply(response.status, lowered, body).error()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error
        return _Body(response, self._address.url)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the session; the next request opens another."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> "aiohttp.ClientSession":
        import aiohttp

        home = (os.getpid(), asyncio.get_running_loop())
        if self._home is not None and self._home[0] != os.getpid():
            _LEFT_TO_PARENTS.append(self._session)
            self._session = None
        if self._session is None or self._session.closed or self._home != home:
            secure = self._address.url.startswith("https:")
            connector = aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=KEEP_ALIVE_S,
                ssl=self._address.tls.context() if secure else True,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=self._address.headers(),
                skip_auto_headers=("User-Agent", "Accept-Encoding"),
                read_bufsize=READ_BUFFER,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._home = home
        return self._session

    def _url(self, path: str) -> "URL":
        from yarl import URL

        return URL(self._address.url + path, encoded=True)

    def _unreachable(self, error: Exception) -> Unreachable:
        import aiohttp

        never_sent = isinstance(
            error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
        )
        return unreachable(self._address.url, error, sent=not never_sent)


class _Body:
    """The body of an open stream."""

    def __init__(self, response: "aiohttp.ClientResponse", url: str) -> None:
        self._response = response
        self._url = url

    async def read(self) -> bytes:
        import aiohttp

        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(self._url, error) from error

    async def close(self) -> None:
        self._response.close()
