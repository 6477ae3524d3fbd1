"""Listens on one port of an address or of two, and passes every request to one handler."""

import asyncio
import errno
import itertools
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

from zq.http.transport.addresses import listening_hosts
from zq.http.transport.answer import (
    MAX_HEADER_FIELD,
    MAX_HEADERS,
    MAX_REQUEST_LINE,
    Responder,
)
from zq.http.transport.connection import Connection
from zq.http.transport.gate import Gate
from zq.http.transport.h2.codec import MakeCodec
from zq.http.transport.h2.connection import Http2Connection
from zq.http.transport.opening import Opening
from zq.http.transport.turns import LoopTurns
from zq.model.clock import Clock

BACKLOG = 1024
FLUSH_S = 0.2
TLS_SHUTDOWN_S = 1.0

NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, None)
"""How a machine without IPv6 refuses to listen on `::1`. Newer Pythons give no number."""

TRIES = 8
"""How often a port of the system's choice is tried that has to be free on several addresses."""

ONE_IN = 100
"""A sampled log has this share of the requests, and all those with a 5xx answer."""


class AccessLogger(AbstractAccessLogger):
    """Writes one line for each request: method, path, status and milliseconds."""

    def log(self, request: web.BaseRequest, response: Any, time: float) -> None:
        """Called by aiohttp; `time` is in seconds."""
        fields = {
            "method": request.method,
            "path": request.path,
            "status": response.status,
            "latency_ms": round(time * 1000, 3),
        }
        self.logger.info("request", extra={"fields": fields})


class SampledAccessLogger(AccessLogger):
    """Writes a line for one request in a hundred, and for each that the server failed."""

    _count = itertools.count()

    def log(self, request: web.BaseRequest, response: Any, time: float) -> None:
        """Called by aiohttp; `time` is in seconds."""
        if response.status >= 500 or next(self._count) % ONE_IN == 0:
            super().log(request, response, time)


_LOGGERS = {"all": AccessLogger, "sampled": SampledAccessLogger}


class ListenError(Exception):
    """The server cannot listen on an address. The message says which, and what to change."""


class AddressInUse(ListenError):
    """Another program listens there."""


class Listener:
    """One port of a host. `stop` ends it in good order.

    `api` is its name in the log of requests. Handlers wait for `replies` without a task.
    """

    def __init__(
        self,
        responder: Responder,
        access_log: str,
        *,
        api: str = "primary",
        replies: type[asyncio.Future[Any]],
        gate: Gate,
        clock: Clock,
        turns: LoopTurns,
        header_timeout: float,
        make_codec: MakeCodec,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        # A handler ends with its connection, but a command that it has submitted does not.
        handler: Any = responder
        self._manager = web.Server(handler, handler_cancellation=True)
        self._responder = responder
        self._replies = replies
        self._access_log = access_log
        self._requests_log = logging.getLogger(f"zq.api.{api}")
        self._gate = gate
        self._clock = clock
        self._turns = turns
        self._header_timeout = header_timeout
        self._make_codec = make_codec
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._opening: set[Opening] = set()
        self._http2: set[Http2Connection] = set()

    async def start(
        self, host: str, port: int, passed: socket.socket | None = None, prefix: str = "--"
    ) -> tuple[str, int]:
        """Begin to accept connections. Return the address, with the port that was chosen.

        A socket that was `passed` listens already, and then `host` and `port` mean nothing. Their
        flags begin with `prefix`. Raises `ListenError`.
        """
        if passed is not None:
            self._servers = [await self._open(sock=passed)]
        else:
            self._servers = await self._open_all(host, port, prefix)
        address: tuple[str, int] = self._servers[0].sockets[0].getsockname()[:2]
        return address

    async def _open_all(
        self, host: str, port: int, prefix: str, tries: int = TRIES
    ) -> list[asyncio.Server]:
        """Open one port on all addresses that a host stands for."""
        first, *others = listening_hosts(host)
        try:
            servers = [await self._open(first, port)]
        except OSError as error:
            raise _reason(first, port, prefix, error) from error
        chosen = servers[0].sockets[0].getsockname()[1]
        for other in others:
            try:
                servers.append(await self._open(other, chosen))
            except OSError as error:
                if error.errno in NO_SUCH_ADDRESS:
                    continue
                servers[0].close()
                if chosen != port and tries:
                    return await self._open_all(host, port, prefix, tries - 1)
                raise _reason(other, chosen, prefix, error) from error
        return servers

    async def _open(
        self, host: str | None = None, port: int | None = None, **options: Any
    ) -> asyncio.Server:
        if self._tls is not None:
            options["ssl"] = self._tls
            options["ssl_handshake_timeout"] = self._header_timeout
            options["ssl_shutdown_timeout"] = TLS_SHUTDOWN_S
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._accept, host, port, backlog=BACKLOG, **options)

    def refuse(self) -> None:
        """Accept no more connections. The open ones go on."""
        for server in self._servers:
            server.close()

    async def stop(self, patience: float) -> None:
        """Give requests under way `patience` seconds, more than 0, to finish. Then close."""
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
        """Give the last bytes a moment to go out, then cut off the peers that do not read them."""
        if self._tls is not None:
            # Those that are left end by themselves after TLS_SHUTDOWN_S.
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
            self._responder.refusal,
            gate=self._gate,
            clock=self._clock,
            timeout=self._header_timeout,
        )

    def _http1_connection(self, on_lost: Callable[[], object]) -> Connection:
        return Connection(
            self._manager,
            self._responder,
            self._replies,
            self._gate,
            self._clock,
            self._turns,
            self._header_timeout,
            on_lost,
            loop=asyncio.get_running_loop(),
            max_line_size=MAX_REQUEST_LINE,
            max_field_size=MAX_HEADER_FIELD,
            max_headers=MAX_HEADERS,
            # A compressed body would have two sizes, so it is refused instead.
            auto_decompress=False,
            **self._logging(),
        )

    def _http2_connection(self, on_lost: Callable[[], object]) -> Http2Connection:
        logger_class = _LOGGERS.get(self._access_log)
        logger = logger_class and logger_class(self._requests_log, "")

        def forget() -> None:
            self._http2.discard(connection)
            on_lost()

        connection = Http2Connection(
            self._manager,
            self._responder,
            logger,
            self._gate,
            self._clock,
            self._turns,
            self._header_timeout,
            self._make_codec,
            forget,
        )
        self._http2.add(connection)
        return connection

    def _logging(self) -> dict[str, Any]:
        if self._access_log not in _LOGGERS:
            return {"access_log": None}
        return {"access_log": self._requests_log, "access_log_class": _LOGGERS[self._access_log]}


def _reason(host: str, port: int, prefix: str, error: OSError) -> ListenError:
    address = url((host, port)).removeprefix("http://")
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(
            f"{address} is in use by another program: stop it, or choose another {prefix}port"
        )
    why = error.strerror or error
    return ListenError(f"cannot listen on {address} ({prefix}host, {prefix}port): {why}")


def url(address: tuple[str, int], scheme: str = "http") -> str:
    """``http://host:port`` of a listening address."""
    host, port = address
    try:
        socket.inet_pton(socket.AF_INET6, host)
    except OSError:
        return f"{scheme}://{host}:{port}"
    return f"{scheme}://[{host}]:{port}"
