"""The first bytes of a connection tell which version of HTTP it speaks, whatever ALPN said."""

import asyncio
from collections.abc import Callable
from typing import cast

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What every HTTP/2 connection begins with (RFC 9113, 3.4)."""

PATIENCE_S = 60.0
"""How long a connection may take to send enough of its first bytes."""


class Opening(asyncio.Protocol):
    """Reads them, then hands the connection over. It is one of the `opening` until then."""

    def __init__(
        self,
        http1: Callable[[], asyncio.Protocol],
        http2: Callable[[], asyncio.Protocol],
        opening: set["Opening"],
    ) -> None:
        self._http1 = http1
        self._http2 = http2
        self._opening = opening
        self._begun = b""
        self._timer: asyncio.TimerHandle
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._opening.add(self)
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        self._begun += data
        if len(self._begun) < len(PREFACE) and PREFACE.startswith(self._begun):
            return
        self._end()
        protocol = self._http2() if self._begun.startswith(PREFACE) else self._http1()
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(self._begun)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        self._timer.cancel()
        self._opening.discard(self)
