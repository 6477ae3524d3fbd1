"""The first bytes of a connection tell its version of HTTP, whatever ALPN said."""

import asyncio
from collections.abc import Callable
from typing import cast

from zq.http.transport.answer import Answer
from zq.http.transport.gate import Gate, Guest, peer_of
from zq.http.transport.h2.frames import PREFACE
from zq.model.clock import Clock, Timer
from zq.model.errors import ZqError

Serve = Callable[[Callable[[], object]], asyncio.Protocol]
"""Makes the protocol of a connection, a `Guest`. It calls its argument once the connection is
lost."""


class Opening(asyncio.Protocol):
    """Reads the first bytes of a connection that the gate lets in, then hands it over.

    It is one of the `opening` until then, and for `timeout` seconds at most. `word` formats the
    answer to a connection that is not let in.
    """

    def __init__(
        self,
        http1: Serve,
        http2: Serve,
        opening: set["Opening"],
        word: Callable[[ZqError], Answer],
        *,
        gate: Gate,
        clock: Clock,
        timeout: float,
    ) -> None:
        self._http1 = http1
        self._http2 = http2
        self._opening = opening
        self._word = word
        self._gate = gate
        self._clock = clock
        self._timeout = timeout
        self._begun = b""
        self._peer = ""
        self._timer: Timer
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._peer = peer_of(transport)
        if not self._gate.enter(self._peer):
            self._gate.turn_away(self.transport, self._peer, self._word)
            return
        self._gate.seat(self)
        self._opening.add(self)
        self._timer = self._clock.call_later(self._timeout, self._give_up)

    def data_received(self, data: bytes) -> None:
        self._begun += data
        if len(self._begun) < len(PREFACE) and PREFACE.startswith(self._begun):
            return
        self._end()
        serve = self._http2 if self._begun.startswith(PREFACE) else self._http1
        protocol = serve(lambda: self._gate.leave(self._peer, guest))
        guest = cast(Guest, protocol)
        self._gate.seat(guest, self)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(self._begun.removeprefix(PREFACE))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._gate.leave(self._peer, self)

    @property
    def is_idle(self) -> bool:
        """True: the connection has not begun to speak HTTP."""
        return True

    def abort(self) -> None:
        self.transport.abort()

    def _give_up(self) -> None:
        self._gate.too_slow()
        self.transport.abort()

    def _end(self) -> None:
        self._timer.cancel()
        self._opening.discard(self)
