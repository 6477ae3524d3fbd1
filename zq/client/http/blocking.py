"""The blocking transport: http.client, no event loop; for scripts, threads, forks and executors."""

import contextlib
import os
import select
import socket
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection

from zq.client.http.address import Address
from zq.client.http.transport import Bytes, Reply, Request, unreachable


class BlockingTransport:
    """Connections that stay open between requests. Each is used by one thread at a time.

    Its coroutines never suspend: see `zq.client.backend.run`. A child process opens its own
    connections.
    """

    blocks = True

    def __init__(self, address: Address) -> None:
        self.url = address.url
        self._address = address
        # A deque needs no lock. A fork could copy a lock in the locked state.
        self._idle: deque[HTTPConnection] = deque()
        self._pid = os.getpid()
        weakref.finalize(self, _close_all, self._idle)  # also when the interpreter ends

    def __reduce__(self) -> tuple[type["BlockingTransport"], tuple[Address]]:
        return BlockingTransport, (self._address,)

    async def send(self, request: Request) -> Reply:
        """Send a request once. Raises `Unreachable`."""
        data = self._address.written(request)
        connection = self._connection(request.timeout)
        try:
            # One piece: http.client would send the body after the head, and wake the server twice.
            connection.sock.sendall(data)
            with HTTPResponse(connection.sock, method=request.method) as response:
                response.begin()
                body = response.read()
        except BaseException as error:
            connection.close()
            if isinstance(error, (HTTPException, OSError)):
                raise unreachable(self._address.url, error) from error
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        lowered = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, lowered, body)

    @contextlib.contextmanager
    def download(
        self, request: Request
    ) -> Iterator[tuple[Mapping[str, str], Callable[[int], bytes]]]:
        """The headers of the answer to one try, and what reads it piece by piece.

        Both raise `Unreachable`; an answer that is no success raises its error.
        """
        with (
            contextlib.closing(self._connect(request.timeout)) as connection,
            HTTPResponse(connection.sock, method=request.method) as response,
        ):
            with self._reaching():
                connection.sock.sendall(self._address.written(request))
                response.begin()
                lowered = {name.lower(): value for name, value in response.getheaders()}
                if response.status != 200:
                    raise Reply(response.status, lowered, response.read()).error()
            # What the caller does with a piece may fail as a connection does.
            yield lowered, self._reaching()(response.read)

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (HTTPException, OSError) as error:
            raise unreachable(self._address.url, error) from error

    async def open(self, path: str, headers: Mapping[str, str]) -> Bytes:
        """Raise an error: streams need an event loop."""
        raise NotImplementedError("streams need an event loop")

    async def sleep(self, seconds: float) -> None:
        """Block the thread for a time in seconds."""
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop that it could hold up

    async def close(self) -> None:
        """Close the idle connections. The next request opens another."""
        _close_all(self._idle)

    def _connection(self, timeout: float) -> HTTPConnection:
        """A connection that seems to be open."""
        if self._pid != os.getpid():
            # The parent goes on with its connections. These are copies of its descriptors.
            _close_all(self._idle)
            self._pid = os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if not _has_ended(connection.sock):
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        return self._connect(timeout)

    def _connect(self, timeout: float) -> HTTPConnection:
        parts = self._address.parts
        if parts.scheme == "https":
            context = self._address.tls.context()
            connection: HTTPConnection = HTTPSConnection(
                parts.netloc, timeout=timeout, context=context
            )
        else:
            connection = HTTPConnection(parts.netloc, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            raise unreachable(self._address.url, error, sent=False) from error
        return connection


def _close_all(idle: deque[HTTPConnection]) -> None:
    while idle:
        with contextlib.suppress(IndexError):
            idle.pop().close()


def _has_ended(sock: socket.socket | None) -> bool:
    """True if an idle connection has been closed. Between two requests, no other data can come."""
    if sock is None:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
