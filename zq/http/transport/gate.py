"""Limits on connections, in all and from one address, and the answers to those above the limit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv6Address, IPv6Network
from typing import Protocol, cast

from zq.http.transport.answer import Answer, last_words
from zq.http.transport.h2.codec import ErrorCode
from zq.http.transport.h2.frames import PREFACE, FrameKind, make
from zq.model.clock import Clock, Timer
from zq.model.errors import HeaderTimeout, TooManyConnections, ZqError

log = logging.getLogger(__name__)

MOST_TURNED_AWAY = 64
"""How many connections over the limit get an answer at a time. The others are closed at once."""

FIRST_BYTES_S = 1.0
"""How long the server waits for the first bytes of a connection over the limit, to answer them."""

LOG_EVERY_S = 1.0


class PeerCounts:
    """Counts how many of something each peer has. A limit of 0 means no limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()

    def enter(self, peer: str) -> bool:
        """Count one more. Return False if the peer has as many as it may."""
        if self._limit and self._counts[peer] >= self._limit:
            return False
        self._counts[peer] += 1
        return True

    def leave(self, peer: str) -> None:
        """Count one less."""
        self._counts[peer] -= 1
        if not self._counts[peer]:
            del self._counts[peer]

    @contextlib.contextmanager
    def one_more(self, peer: str, refusal: Callable[[], ZqError]) -> Iterator[None]:
        """Count one within the block. Raises a `refusal` if the peer has as many as it may."""
        if not self.enter(peer):
            raise refusal()
        try:
            yield
        finally:
            self.leave(peer)


def peer_of(transport: asyncio.BaseTransport | None) -> str:
    """The peer of a connection; see `peer_at`."""
    name = None if transport is None else transport.get_extra_info("peername")
    return peer_at(str(name[0])) if isinstance(name, tuple) else ""


def peer_at(address: str) -> str:
    """The peer: an IPv4 address, or an IPv6 network of /64, which one host may fill.

    A client of this host is one peer, by whichever of the two loopback addresses it comes.
    """
    if ":" not in address:
        return address
    host = IPv6Address(address.partition("%")[0])
    if host.is_loopback:
        return "127.0.0.1"
    if host.ipv4_mapped is not None:
        return str(host.ipv4_mapped)
    return str(IPv6Network((host, 64), strict=False))


class Guest(Protocol):
    """A connection that was let in, as the gate sees it."""

    @property
    def is_idle(self) -> bool:
        """True if it asks for nothing at present."""

    def abort(self) -> None:
        """End it at once."""


class Gate:
    """Counts the open connections. Every `enter` that succeeds needs a `leave`.

    `refused` counts errors by their codes. A gate of few places gives that of a connection which
    asks for nothing to a newcomer, so idle connections shut nobody out.
    """

    def __init__(
        self,
        clock: Clock,
        refused: Counter[str],
        *,
        max_connections: int,
        max_per_peer: int,
        fixed: str | None = None,
        within: Gate | None = None,
    ) -> None:
        """`fixed` names the listener if its most connections are few, and no setting.

        Each connection takes a place of the gate `within` too, whose limits hold as well.
        """
        self._fixed = fixed
        self._within = within
        self.open = 0
        self.accepted = 0
        self.refused = refused
        self._clock = clock
        self._max_connections = max_connections
        self._peers = PeerCounts(max_per_peer)
        self._guests: dict[Guest, None] = {}
        """The connections that are let in, the oldest first; kept only if places are few."""
        self._turned_away: set[asyncio.Transport] = set()
        self._logged_at = float("-inf")
        self._unlogged = 0
        self._closed = False

    def enter(self, peer: str) -> bool:
        """Let a connection in. Return False if it must be turned away."""
        if self._closed:
            return False
        if self.open >= self._max_connections and not self._free_a_place():
            return False
        if not self._peers.enter(peer):
            return False
        if self._within is not None and not self._within.enter(peer):
            self._peers.leave(peer)
            return False
        self.open += 1
        self.accepted += 1
        return True

    def leave(self, peer: str, guest: Guest) -> None:
        """Count one connection less: one that was let in has ended."""
        self.open -= 1
        self._peers.leave(peer)
        self._guests.pop(guest, None)
        if self._within is not None:
            self._within.leave(peer, guest)

    def seat(self, guest: Guest, before: Guest | None = None) -> None:
        """Know what a connection does from now on, or who does it instead of the one `before`."""
        if self._fixed is not None:
            if before is not None:
                self._guests.pop(before, None)
            self._guests[guest] = None

    def _free_a_place(self) -> bool:
        """End the oldest connection that asks for nothing. Return False if there is none."""
        for guest in self._guests:
            if guest.is_idle:
                # It is counted until it is gone, which is in the next turn of the loop.
                del self._guests[guest]
                guest.abort()
                return True
        return False

    def turn_away(
        self, transport: asyncio.Transport, peer: str, word: Callable[[ZqError], Answer]
    ) -> None:
        """Close a connection that was not let in, if possible with an answer that says why.

        `word` formats the answer.
        """
        if self._closed:
            _drop(transport)
            return
        if self._within is not None and self.open < self._max_connections:
            self._within.turn_away(transport, peer, word)
            return
        setting = "--max-connections"
        if self.open < self._max_connections:
            setting = "--max-connections-per-peer"
        advice = f"{setting} permits: close some, or raise it"
        if self._fixed is not None:
            setting = self._fixed
            advice = f"the {setting} takes ({self._max_connections}): close some"
        error = TooManyConnections(f"there are as many connections as {advice}")
        self.refused[error.code] += 1
        self._note(setting, peer)
        if len(self._turned_away) >= MOST_TURNED_AWAY:
            _drop(transport)
            return
        self._turned_away.add(transport)
        farewell = _Farewell(self._clock, error, word, self._turned_away.discard)
        transport.set_protocol(farewell)
        farewell.connection_made(transport)

    def too_slow(self) -> HeaderTimeout:
        """Count a header that has not arrived in time, and return its error."""
        error = HeaderTimeout("the header took too long to arrive (--header-timeout)")
        self.refused[error.code] += 1
        return error

    def close(self) -> None:
        """Let nobody in any more, and drop those that wait to hear why they were turned away."""
        self._closed = True
        for transport in self._turned_away:
            transport.abort()

    def _note(self, setting: str, peer: str) -> None:
        """Log the first refusal, then once a second how many there were."""
        self._unlogged += 1
        now = self._clock.monotonic()
        if now - self._logged_at >= LOG_EVERY_S:
            fields = {"limit": setting, "peer": peer, "count": self._unlogged}
            log.warning("connections refused", extra={"fields": fields})
            self._logged_at, self._unlogged = now, 0


def _drop(transport: asyncio.Transport) -> None:
    """End a connection that was not let in, of which nobody needs to hear."""
    transport.set_protocol(asyncio.Protocol())
    transport.abort()


class _Farewell(asyncio.Protocol):
    """Answers the first bytes of a connection in its version of HTTP, and closes it."""

    def __init__(
        self,
        clock: Clock,
        error: ZqError,
        word: Callable[[ZqError], Answer],
        gone: Callable[[asyncio.Transport], None],
    ) -> None:
        self._clock = clock
        self._error = error
        self._word = word
        self._gone = gone
        self._transport: asyncio.Transport
        self._timer: Timer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._clock.call_later(FIRST_BYTES_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        if data.startswith(PREFACE[: len(data)]):
            self._transport.write(_calm(self._error))
        else:
            self._transport.write(last_words(self._word(self._error)))
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._gone(self._transport)


def _calm(error: ZqError) -> bytes:
    """The frames of HTTP/2 that end a connection before its first request, with the reason."""
    reason = bytes(4) + ErrorCode.ENHANCE_YOUR_CALM.to_bytes(4, "big") + error.message.encode()
    return make(FrameKind.SETTINGS) + make(FrameKind.GOAWAY, payload=reason)
