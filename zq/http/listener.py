"""Listens on one port and has one handler answer what comes on every connection."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from zq.http.access import ACCESS_LOG, AccessLogger, SampledAccessLogger
from zq.http.connection import MAX_HEADER_FIELD, MAX_HEADERS, MAX_REQUEST_LINE, Connection
from zq.http.endpoints import Handler
from zq.http.gate import Gate
from zq.http.h2.codec import MakeCodec
from zq.http.h2.connection import Http2Connection
from zq.http.opening import Opening
from zq.model.clock import Clock

BACKLOG = 1024
FLUSH_S = 0.2
TLS_SHUTDOWN_S = 1.0

_LOGGERS = {"all": AccessLogger, "sampled": SampledAccessLogger}


class ListenError(Exception):
    """The address cannot be listened on; the message says which and what to change."""


class Listener:
    """One listening socket. `stop` ends it in good order."""

    def __init__(
        self,
        handler: Handler,
        access_log: str,
        *,
        gate: Gate,
        clock: Clock,
        header_timeout: float,
        make_codec: MakeCodec,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        # A handler ends with its connection: a command that it has submitted does not.
        answering: Any = handler
        self._manager = web.Server(answering, handler_cancellation=True)
        self._access_log = access_log
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._make_codec = make_codec
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._opening: set[Opening] = set()
        self._http2: set[Http2Connection] = set()

    async def start(
        self, host: str, port: int, passed: socket.socket | None = None
    ) -> tuple[str, int]:
        """Begin to accept connections; the address that it is, with the port that was chosen.

        A socket that was passed listens already: then `host` and `port` mean nothing.
        """
        loop = asyncio.get_running_loop()
        tls: dict[str, Any] = {}
        if self._tls is not None:
            tls = {
                "ssl": self._tls,
                "ssl_handshake_timeout": self._header_timeout,
                "ssl_shutdown_timeout": TLS_SHUTDOWN_S,
            }
        try:
            if passed is not None:
                self._server = await loop.create_server(
                    self._accept, sock=passed, backlog=BACKLOG, **tls
                )
            else:
                self._server = await loop.create_server(
                    self._accept, host, port, backlog=BACKLOG, reuse_address=True, **tls
                )
        except OSError as error:
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
        for opening in list(self._opening):
            opening.transport.abort()
        connections: list[web.RequestHandler | Http2Connection] = [
            *self._manager.connections,
            *self._http2,
        ]
        transports = [
            connection.transport for connection in connections if connection.transport is not None
        ]
        self._manager.pre_shutdown()
        await asyncio.gather(
            self._manager.shutdown(patience),
            *(connection.shutdown(patience) for connection in self._http2),
        )
        await self._flush(transports)

    async def _flush(self, transports: Sequence[asyncio.Transport]) -> None:
        """Give last words a moment to go out, then cut off whoever does not read them."""
        if self._tls is not None:
            # What is left of these ends after TLS_SHUTDOWN_S by itself.
            await asyncio.sleep(FLUSH_S if transports else 0)
            return
        stuck = [transport for transport in transports if transport.get_write_buffer_size()]
        if stuck:
            await asyncio.sleep(FLUSH_S)
        for transport in stuck:
            transport.abort()

    def _accept(self) -> Opening:
        return Opening(
            self._http1_connection,
            self._http2_connection,
            self._opening,
            gate=self._gate,
            clock=self._clock,
            timeout=self._header_timeout,
        )

    def _http1_connection(self, on_lost: Callable[[], object]) -> Connection:
        return Connection(
            self._manager,
            self._gate,
            self._clock,
            self._header_timeout,
            on_lost,
            loop=asyncio.get_running_loop(),
            max_line_size=MAX_REQUEST_LINE,
            max_field_size=MAX_HEADER_FIELD,
            max_headers=MAX_HEADERS,
            # A compressed body would have two sizes; it is refused instead.
            auto_decompress=False,
            **self._logging(),
        )

    def _http2_connection(self, on_lost: Callable[[], object]) -> Http2Connection:
        logger_class = _LOGGERS.get(self._access_log)
        logger = logger_class and logger_class(ACCESS_LOG, "")

        def forget() -> None:
            self._http2.discard(connection)
            on_lost()

        connection = Http2Connection(
            self._manager,
            logger,
            self._gate,
            self._clock,
            self._header_timeout,
            self._make_codec,
            forget,
        )
        self._http2.add(connection)
        return connection

    def _logging(self) -> dict[str, Any]:
        if self._access_log not in _LOGGERS:
            return {"access_log": None}
        return {"access_log": ACCESS_LOG, "access_log_class": _LOGGERS[self._access_log]}


def _why(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is in use by another program: stop it, or choose another --port"
    return f"cannot listen on {host}:{port} (--host, --port): {error.strerror or error}"


def url(address: tuple[str, int], scheme: str = "http") -> str:
    """``http://host:port`` of a listening address."""
    host, port = address
    try:
        socket.inet_pton(socket.AF_INET6, host)
    except OSError:
        return f"{scheme}://{host}:{port}"
    return f"{scheme}://[{host}]:{port}"
