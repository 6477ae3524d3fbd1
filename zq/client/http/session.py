"""Connections to a server in one event loop, with aiohttp: pooled, kept open, with TLS."""

import asyncio
from collections.abc import Mapping

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from yarl import URL

from zq.client.http.address import Address
from zq.client.http.transport import Bytes, Reply, Request, unreachable

SILENCE_S = 30.0
"""A stream that is silent for this long is broken: servers send a heartbeat every few seconds."""

CONNECT_S = 10.0
READ_BUFFER = 2**18
KEEP_ALIVE_S = 60.0

FAILURES = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError)
_CONNECTING = aiohttp.ClientTimeout(connect=CONNECT_S)


class Session:
    """A session for one event loop. Make it in that loop."""

    def __init__(self, address: Address) -> None:
        self._address = address
        url = URL(address.url, encoded=True)
        self._connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE_S,
            ssl=address.tls.context() if url.scheme == "https" else True,
        )
        self._streams = aiohttp.ClientSession(
            connector=self._connector,
            headers=address.headers(),
            skip_auto_headers=("User-Agent", "Accept-Encoding"),
            read_bufsize=READ_BUFFER,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # The pool knows a server by this key.
        self._server = aiohttp.ClientRequest("GET", url, loop=asyncio.get_running_loop())

    @property
    def closed(self) -> bool:
        """True if it has been closed."""
        return self._streams.closed

    async def send(self, request: Request) -> Reply:
        """Send a request once. Raises `Unreachable`.

        The request is written directly to a connection of the pool. The other steps of a
        `ClientSession` (cookies, redirects, forms, a task that writes) take twice as long as the
        rest.
        """
        data = self._address.written(request)
        sent = False
        try:
            async with asyncio.timeout(request.timeout):
                connection = await self._connector.connect(self._server, [], _CONNECTING)
                sent = True
                try:
                    reply = await _exchange(connection, data)
                except BaseException:
                    connection.close()
                    raise
                connection.release()
        except FAILURES as error:
            raise unreachable(self._address.url, error, sent=sent) from error
        return reply

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """Open a stream. Raises `Unreachable`, or the error of the server's refusal."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=SILENCE_S)
        url = URL(self._address.url + path, encoded=True)
        try:
            response = await self._streams.request(
                "GET", url, headers=headers, timeout=timeout, allow_redirects=False
            )
            if response.status != 200:
                raise Reply(response.status, response.headers, await response.read()).error()
        except FAILURES as error:
            never = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
            raise unreachable(self._address.url, error, sent=not never) from error
        return _Body(response, self._address.url)

    async def close(self) -> None:
        """Close every connection."""
        await self._streams.close()


async def _exchange(connection: Connection, data: bytes) -> Reply:
    """Send a request and read its answer. Raises one of `FAILURES`."""
    protocol = connection.protocol
    if protocol is None or protocol.transport is None:
        raise aiohttp.ServerDisconnectedError
    protocol.set_response_params(read_until_eof=True, read_bufsize=READ_BUFFER)
    protocol.transport.write(data)
    message, body = await protocol.read()
    while message.code < 200:  # an interim answer
        message, body = await protocol.read()
    return Reply(message.code, message.headers, await body.read())


class _Body:
    """The body of an open stream."""

    def __init__(self, response: aiohttp.ClientResponse, url: str) -> None:
        self._response = response
        self._url = url

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except FAILURES as error:
            raise unreachable(self._url, error) from error

    async def close(self) -> None:
        self._response.close()
