"""Listens on one port of an address or of two, and passes every request to one handler."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

from zq.http.transport.answer import (
    MAX_HEADER_FIELD,
    MAX_HEADERS,
    MAX_REQUEST_LINE,
    Responder,
)
from zq.http.transport.connection import Connection
from zq.http.transport.gate import Gate
from zq.http.transport.h2.codec import MakeCodec
from zq.http.transport.opening import Opening
from zq.http.transport.ports import ListeningPorts
from zq.http.transport.turns import LoopTurns
from zq.model.clock import Clock

if TYPE_CHECKING:
    from zq.http.transport.h2.connection import Http2Connection

FLUSH_S = 0.2

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
        self._ports = ListeningPorts(self._accept, tls, header_timeout)
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
            return await self._ports.adopt(passed)
        return await self._ports.open(host, port, (f"{prefix}host", f"{prefix}port"))

    async def stop(self, patience: float) -> None:
        """Give requests under way `patience` seconds, more than 0, to finish. Then close."""
        await self._ports.close()
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
        from zq.http.transport.h2.connection import Http2Connection  # many servers never see one

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
