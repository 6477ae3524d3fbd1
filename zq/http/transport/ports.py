"""Opens a port to listen on, on each address that a host stands for."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Any

from zq.http.transport.addresses import listening_hosts, parse_address

BACKLOG = 1024
TLS_SHUTDOWN_S = 1.0

NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, None)
"""How a machine without IPv6 refuses to listen on `::1`. Newer Pythons give no number."""

TRIES = 8
"""How often a port of the system's choice is tried that has to be free on several addresses."""

Flags = tuple[str, str]
"""The names of the flags for the host and for the port, which errors tell."""


class ListenError(Exception):
    """The server cannot listen on an address. The message says which, and what to change."""


class AddressInUse(ListenError):
    """Another program listens there."""


class ListeningPorts:
    """The sockets of one listener. Each connection to them gets what `accept` returns."""

    def __init__(
        self,
        accept: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext | None,
        handshake_timeout: float,
    ) -> None:
        """The time is in seconds."""
        self._accept = accept
        self._tls = tls
        self._handshake_timeout = handshake_timeout
        self._servers: list[asyncio.Server] = []

    async def adopt(self, passed: socket.socket) -> tuple[str, int]:
        """Accept connections to a socket that listens already. Return its address."""
        self._servers = [await self._open(sock=passed)]
        return self._address()

    async def open(self, host: str, port: int, flags: Flags) -> tuple[str, int]:
        """Accept connections to a port; 0 means any free one. Return its address.

        Raises `ListenError`.
        """
        self._servers = await self._open_all(host, port, flags, TRIES)
        return self._address()

    async def close(self) -> None:
        """Accept no more connections. The open ones go on.

        asyncio loses a connection that was accepted but has not begun when its server closes
        (`Server._attach` of Python 3.11 fails): nobody would close it. So those begin first.
        """
        loop = asyncio.get_running_loop()
        for server in self._servers:
            for listening in server.sockets:
                loop.remove_reader(listening)
        await asyncio.sleep(0)
        for server in self._servers:
            server.close()

    def _address(self) -> tuple[str, int]:
        address: tuple[str, int] = self._servers[0].sockets[0].getsockname()[:2]
        return address

    async def _open_all(
        self, host: str, port: int, flags: Flags, tries: int
    ) -> list[asyncio.Server]:
        """Open one port on all addresses that a host stands for."""
        first, *others = listening_hosts(host)
        try:
            servers = [await self._open(first, port)]
        except OSError as error:
            raise _reason(first, port, flags, error) from error
        chosen = servers[0].sockets[0].getsockname()[1]
        for other in others:
            try:
                servers.append(await self._open(other, chosen))
            except OSError as error:
                if error.errno in NO_SUCH_ADDRESS:
                    continue
                servers[0].close()
                if chosen != port and tries:
                    return await self._open_all(host, port, flags, tries - 1)
                raise _reason(other, chosen, flags, error) from error
        return servers

    async def _open(
        self, host: str | None = None, port: int | None = None, **options: Any
    ) -> asyncio.Server:
        if self._tls is not None:
            options["ssl"] = self._tls
            options["ssl_handshake_timeout"] = self._handshake_timeout
            options["ssl_shutdown_timeout"] = TLS_SHUTDOWN_S
        loop = asyncio.get_running_loop()
        if host is not None and parse_address(host) is not None:
            # The loop would look even an address up, and start threads for that.
            options["sock"] = _bound(host, port)
            host = port = None
        return await loop.create_server(self._accept, host, port, backlog=BACKLOG, **options)


def _bound(address: str, port: int | None) -> socket.socket:
    """A socket bound as the loop binds them."""
    flags = socket.AI_PASSIVE | socket.AI_NUMERICHOST
    (found, *_) = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=flags)
    family, kind, protocol, _, place = found
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(place)
    except BaseException:
        bound.close()
        raise
    return bound


def _reason(host: str, port: int, flags: Flags, error: OSError) -> ListenError:
    address = url((host, port)).removeprefix("http://")
    of_host, of_port = flags
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(
            f"{address} is in use by another program: stop it, or choose another {of_port}"
        )
    why = error.strerror or error
    return ListenError(f"cannot listen on {address} ({of_host}, {of_port}): {why}")


def url(address: tuple[str, int], scheme: str = "http") -> str:
    """``http://host:port`` of a listening address."""
    host, port = address
    try:
        socket.inet_pton(socket.AF_INET6, host)
    except OSError:
        return f"{scheme}://{host}:{port}"
    return f"{scheme}://[{host}]:{port}"
