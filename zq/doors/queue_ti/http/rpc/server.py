"""The listener of gRPC: its address, its limits, and the library behind it."""

import logging
import ssl
from typing import NamedTuple

from grpc import aio

from zq.doors.queue_ti.http.documents import problem
from zq.doors.queue_ti.http.rpc.links import LIBRARY, RefusedConnection, RpcLinks
from zq.doors.queue_ti.http.rpc.service import QueueService
from zq.http.transport.gate import Gate
from zq.http.transport.opening import Opening
from zq.http.transport.ports import ListeningPorts, url
from zq.model.clock import Clock

log = logging.getLogger("zq.serve")

IDLE_MS = 5 * 60 * 1000
"""How long a connection without a call stays open."""


class RpcPlace(NamedTuple):
    """The address of gRPC, and its limits."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    max_message: int
    max_calls: int
    header_timeout: int
    """How long a connection may take until it speaks HTTP/2, in milliseconds."""


class RpcServer:
    """`start`, then `stop`. `gate` lets its connections in."""

    def __init__(
        self, service: QueueService, links: RpcLinks, place: RpcPlace, gate: Gate, clock: Clock
    ) -> None:
        self._place = place
        self._links = links
        self._gate = gate
        self._clock = clock
        self._opening: set[Opening] = set()
        self._ports = ListeningPorts(self._accept, place.tls, place.header_timeout / 1000)
        self._library = aio.server(
            maximum_concurrent_rpcs=place.max_calls,
            options=[
                ("grpc.max_receive_message_length", place.max_message),
                ("grpc.max_send_message_length", -1),
                ("grpc.http2.settings_timeout", place.header_timeout),
                # A client opens a connection again with its next call.
                ("grpc.max_connection_idle_ms", IDLE_MS),
            ],
        )
        self._library.add_generic_rpc_handlers((service.handlers(),))
        self.port = 0
        """The port that it listens on."""

    async def start(self) -> None:
        """Answer calls from now on. Raises `ListenError`."""
        place = self._place
        self._library.add_insecure_port(f"unix:{self._links.directory / LIBRARY}")
        await self._library.start()
        address = await self._ports.open(place.host, place.port, ("--host", "--grpc-port"))
        self.port = address[1]
        fields = {"api": "grpc", "addr": url(address).removeprefix("http://")}
        log.info("listening", extra={"fields": fields})

    async def stop(self, patience: float) -> None:
        """Let calls under way finish for up to `patience` seconds, then close."""
        await self._ports.close()
        self._gate.close()
        for opening in list(self._opening):
            opening.abort()
        await self._library.stop(patience)
        await self._links.close()

    def _accept(self) -> Opening:
        return Opening(
            lambda on_lost: RefusedConnection(problem, on_lost),
            self._links.serve,
            self._opening,
            problem,
            gate=self._gate,
            clock=self._clock,
            timeout=self._place.header_timeout / 1000,
        )
