"""Whether the peer of a long-lived response is still there, by TCP's own account."""

import asyncio
import socket
import struct
from enum import Enum
from typing import NamedTuple

# Fields of Linux's struct tcp_info: microseconds after which data is sent again, segments sent and
# not acknowledged, milliseconds since the last acknowledgement, bytes acknowledged, bytes not sent.
_TCP_INFO = struct.Struct("=8xI12xI28xI60xQ16xI")

_MARGIN_MS = 250
"""For an answer to what was sent again: more than Linux's shortest time-out."""


class _Account(NamedTuple):
    resend_ms: int
    under_way: int
    silent_ms: int
    acknowledged: int
    queued: int


class Peer(Enum):
    """What a look at a connection finds."""

    PRESENT = "present"
    VANISHED = "vanished"
    """Data has been under way for too long without an acknowledgement: nobody can be there."""
    STALLED = "stalled"
    """Data waits and none of it was taken for too long: somebody is there and does not read."""


class PeerWatch:
    """Looks at one connection from time to time. Times in seconds.

    Silence alone does not tell a peer that is gone from one that does not read: the latter may
    have dropped what found no room. But it answers whenever that is sent again, at intervals that
    double, so its silence never outlasts the current interval.
    """

    def __init__(
        self, transport: asyncio.Transport, *, silence: float, stall_timeout: float, now: float
    ) -> None:
        self._transport = transport
        self._socket = _tcp_socket(transport)
        self._silence_ms = silence * 1000
        self._stall_timeout = stall_timeout
        self._progress = -1
        self._progress_at = now

    def look(self, now: float) -> Peer:
        """Judge the peer at the time `now`, by a monotonic clock."""
        buffered = self._transport.get_write_buffer_size()
        account = self._account(buffered)
        patience_ms = max(self._silence_ms, account.resend_ms + _MARGIN_MS)
        if account.under_way and account.silent_ms >= patience_ms:
            return Peer.VANISHED
        if account.acknowledged != self._progress or not buffered + account.queued:
            self._progress, self._progress_at = account.acknowledged, now
        elif now - self._progress_at >= self._stall_timeout:
            return Peer.STALLED
        return Peer.PRESENT

    def _account(self, buffered: int) -> _Account:
        if self._socket is None:
            # Not TCP: all there is to see is whether the buffer shrinks.
            return _Account(0, 0, 0, -buffered, 0)
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        resend_us, *rest = _TCP_INFO.unpack(info)
        return _Account(resend_us // 1000, *rest)


def _tcp_socket(transport: asyncio.Transport) -> socket.socket | None:
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    return connection
