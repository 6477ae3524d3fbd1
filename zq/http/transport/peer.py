"""Whether the peer of a long-lived response is still there, by TCP's own account."""

import asyncio
import fcntl
import socket
import struct
import termios
from typing import NamedTuple

from zq.http.transport.channel import Channel, Peer

# Fields of Linux's struct tcp_info: microseconds after which data is sent again, segments sent and
# not acknowledged, milliseconds since the last acknowledgement, bytes acknowledged, bytes not sent.
_TCP_INFO = struct.Struct("=8xI12xI28xI60xQ16xI")

_OUTSTANDING = struct.Struct("=i")
"""What TIOCOUTQ answers: bytes that are not acknowledged yet, sent or not (Linux's tcp(7))."""

_MARGIN_MS = 250
"""For an answer to what was sent again: more than Linux's shortest time-out."""


class _Account(NamedTuple):
    resend_ms: int
    under_way: int
    silent_ms: int
    acknowledged: int
    queued: int


_NOTHING_WAITS = _Account(0, 0, 0, 0, 0)


class _Movement:
    """Whether something that waits moves. Times in seconds."""

    def __init__(self, patience: float, now: float) -> None:
        self._patience = patience
        self._mark = -1
        self._since = now

    def is_over(self, mark: int, waits: bool, now: float) -> bool:
        """Whether `mark` has stayed as it is for too long although something `waits`."""
        if mark != self._mark or not waits:
            self._mark, self._since = mark, now
            return False
        return now - self._since >= self._patience


class PeerWatch:
    """Looks at one connection from time to time. Times in seconds.

    Silence alone does not tell a peer that is gone from one that does not read: the latter may
    have dropped what found no room. But it answers whenever that is sent again, at intervals that
    double, so its silence never outlasts the current interval.
    """

    def __init__(
        self, channel: Channel, *, silence: float, stall_timeout: float, now: float
    ) -> None:
        self._channel = channel
        self._socket = _tcp_socket(channel.transport)
        self._silence_ms = silence * 1000
        self._connection = _Movement(stall_timeout, now)
        self._response = _Movement(stall_timeout, now)

    def look(self, now: float) -> Peer:
        """Judge the peer at the time `now`, by a monotonic clock."""
        withheld = self._channel.withheld()
        buffered = self._channel.unsent() - withheld
        account = self._account(buffered)
        patience_ms = max(self._silence_ms, account.resend_ms + _MARGIN_MS)
        if account.under_way and account.silent_ms >= patience_ms:
            return Peer.VANISHED
        if self._connection.is_over(account.acknowledged, buffered + account.queued > 0, now):
            return Peer.STALLED
        if self._response.is_over(self._channel.moved(), withheld > 0, now):
            return Peer.WITHHOLDS
        return Peer.PRESENT

    def _account(self, buffered: int) -> _Account:
        if self._socket is None:
            # Not TCP: all there is to see is whether the buffer shrinks.
            return _Account(0, 0, 0, -buffered, 0)
        if not buffered and not _outstanding(self._socket):
            return _NOTHING_WAITS
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        resend_us, *rest = _TCP_INFO.unpack(info)
        return _Account(resend_us // 1000, *rest)


def _outstanding(connection: socket.socket) -> int:
    """Bytes that the peer has not acknowledged: a quick look, at a fifth of TCP_INFO's cost."""
    descriptor = connection.fileno()
    if descriptor < 0:
        return 0  # closed a moment ago, which its handler is about to hear
    answer = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(_OUTSTANDING.size))
    (count,) = _OUTSTANDING.unpack(answer)
    return int(count)


def _tcp_socket(transport: asyncio.Transport | None) -> socket.socket | None:
    if transport is None:
        return None
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    return connection
