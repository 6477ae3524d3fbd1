"""The listener of gRPC: its address, its certificates, its limits."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from grpc import aio

from zq.http.queue_ti.rpc.service import QueueService
from zq.http.transport.listener import ListenError, url
from zq.http.transport.tls import CertificateFiles

log = logging.getLogger("zq.serve")


IDLE_MS = 5 * 60 * 1000
"""How long a connection without a call stays open."""


class RpcPlace(NamedTuple):
    """Where gRPC listens, and its limits."""

    host: str
    port: int
    certificates: CertificateFiles | None
    max_message: int
    max_calls: int
    max_connections: int
    handshake_ms: int
    """How long a connection may take until it speaks HTTP/2."""


class RpcServer:
    """`start`, then `stop`."""

    def __init__(self, service: QueueService, place: RpcPlace) -> None:
        self._place = place
        self._server = aio.server(
            maximum_concurrent_rpcs=place.max_calls,
            options=[
                ("grpc.max_receive_message_length", place.max_message),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_allowed_incoming_connections", place.max_connections),
                ("grpc.server_handshake_timeout_ms", place.handshake_ms),
                ("grpc.http2.settings_timeout", place.handshake_ms),
                # A client opens a connection again with its next call.
                ("grpc.max_connection_idle_ms", IDLE_MS),
                # Two servers on one port would each get some of the calls.
                ("grpc.so_reuseport", 0),
            ],
        )
        self._server.add_generic_rpc_handlers((service.handlers(),))
        self.port = 0
        """The port that it listens on."""

    async def start(self) -> None:
        """Answer calls from now on. Raises `ListenError`."""
        host, port, files, *_ = self._place
        address = url((host, port)).removeprefix("http://")
        try:
            if files is None:
                self.port = self._server.add_insecure_port(address)
            else:
                self.port = self._server.add_secure_port(address, _credentials(files))
        except RuntimeError:
            raise ListenError(
                f"--grpc-port: cannot listen on {address}: choose another port, or stop the program"
                " that has this one"
            ) from None
        await self._server.start()
        fields = {"api": "grpc", "addr": url((host, self.port)).removeprefix("http://")}
        log.info("listening", extra={"fields": fields})

    async def stop(self, patience: float) -> None:
        """Let calls under way finish for up to `patience` seconds, then close."""
        await self._server.stop(patience)


def _credentials(files: CertificateFiles) -> grpc.ServerCredentials:
    """Credentials that follow the files: each handshake uses those that lie there."""
    known = _stamp(files)

    def changed() -> Any:
        # Its type leaves out that None means no change, as where files cannot be read. gRPC calls
        # it in a thread of its own.
        nonlocal known
        try:
            stamp = _stamp(files)
            if stamp == known:
                return None
            fresh = _configuration(files)
        except OSError:
            return None
        known = stamp
        return fresh

    return grpc.dynamic_ssl_server_credentials(
        _configuration(files), changed, require_client_authentication=files.client_ca is not None
    )


def _configuration(files: CertificateFiles) -> grpc.ServerCertificateConfiguration:
    authority = None if files.client_ca is None else files.client_ca.read_bytes()
    pair = (files.key.read_bytes(), files.cert.read_bytes())
    return grpc.ssl_server_certificate_configuration([pair], authority)


def _stamp(files: CertificateFiles) -> list[tuple[int, int]]:
    paths = (files.cert, files.key, files.client_ca)
    return [_seen(path) for path in paths if path is not None]


def _seen(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_ino
