"""Listens on one port and serves the application on every connection."""

import asyncio
import errno
import logging
import socket
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from zq.http.access import AccessLogger, SampledAccessLogger
from zq.http.connection import MAX_HEADER_FIELD, MAX_HEADERS, MAX_REQUEST_LINE, Connection
from zq.http.gate import Gate
from zq.model.clock import Clock

BACKLOG = 1024
FLUSH_S = 0.2

_LOGGERS = {"all": AccessLogger, "sampled": SampledAccessLogger}


class ListenError(Exception):
    """The address cannot be listened on; the message says which and what to change."""


class Listener:
    """One listening socket. `stop` ends it in good order."""

    def __init__(
        self,
        app: web.Application,
        access_log: str,
        *,
        gate: Gate,
        clock: Clock,
        header_timeout: float,
    ) -> None:
        # A handler ends with its connection: a command that it has submitted does not.
        self._runner = web.AppRunner(app, handler_cancellation=True)
        self._access_log = access_log
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._server: asyncio.Server | None = None

    async def start(
        self, host: str, port: int, passed: socket.socket | None = None
    ) -> tuple[str, int]:
        """Begin to accept connections; the address that it is, with the port that was chosen.

        A socket that was passed listens already: then `host` and `port` mean nothing.
        """
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        try:
            if passed is not None:
                self._server = await loop.create_server(
                    self._connection, sock=passed, backlog=BACKLOG
                )
            else:
                self._server = await loop.create_server(
                    self._connection, host, port, backlog=BACKLOG, reuse_address=True
                )
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(_why(host, port, error)) from error
        address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return address

    def refuse(self) -> None:
        """Accept no more connections; those that are open go on."""
        if self._server is not None:
            self._server.close()

    async def stop(self, patience: float) -> None:
        """Let requests under way finish for up to `patience` seconds, not 0, then close."""
        self.refuse()
        self._gate.close()
        server = self._runner.server
        if server is not None:
            transports = [
                connection.transport
                for connection in server.connections
                if connection.transport is not None
            ]
            server.pre_shutdown()
            await server.shutdown(patience)
            await _flush(transports)
        await self._runner.cleanup()

    def _connection(self) -> Connection:
        manager = self._runner.server
        assert manager is not None
        options: dict[str, Any] = {"access_log": None}
        if self._access_log in _LOGGERS:
            options = {
                "access_log": logging.getLogger("zq.api.primary"),
                "access_log_class": _LOGGERS[self._access_log],
            }
        return Connection(
            manager,
            self._gate,
            self._clock,
            self._header_timeout,
            loop=asyncio.get_running_loop(),
            max_line_size=MAX_REQUEST_LINE,
            max_field_size=MAX_HEADER_FIELD,
            max_headers=MAX_HEADERS,
            # A compressed body would have two sizes; it is refused instead.
            auto_decompress=False,
            **options,
        )


async def _flush(transports: Iterable[asyncio.Transport]) -> None:
    """Give last words a moment to go out, then cut off whoever does not read them."""
    stuck = [transport for transport in transports if transport.get_write_buffer_size()]
    if stuck:
        await asyncio.sleep(FLUSH_S)
    for transport in stuck:
        transport.abort()


def _why(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is in use by another program: stop it, or choose another --port"
    return f"cannot listen on {host}:{port} (--host, --port): {error.strerror or error}"


def url(address: tuple[str, int]) -> str:
    """``http://host:port`` of a listening address."""
    host, port = address
    try:
        socket.inet_pton(socket.AF_INET6, host)
    except OSError:
        return f"http://{host}:{port}"
    return f"http://[{host}]:{port}"
