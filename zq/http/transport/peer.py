"""Tells from TCP's own counters whether the peer of a long-lived response is still there."""

import asyncio
import fcntl
import socket
import struct
import termios
from typing import NamedTuple

from zq.http.transport.channel import Channel, Peer

# These are fields of Linux's struct tcp_info: the microseconds after which data is sent again, the
# segments that were sent and are not acknowledged, the milliseconds since the last acknowledgement,
# the bytes that are acknowledged, and the bytes that are not sent.
_TCP_INFO = struct.Struct("=8xI12xI28xI60xQ16xI")

_OUTSTANDING = struct.Struct("=i")
"""TIOCOUTQ counts the bytes that are not acknowledged yet, sent or not (Linux's tcp(7))."""

_MARGIN_MS = 250
"""How long the answer to repeated data may take. It is more than Linux's shortest time-out."""


class _Account(NamedTuple):
    resend_ms: int
    under_way: int
    silent_ms: int
    acknowledged: int
    queued: int


_NOTHING_WAITS = _Account(0, 0, 0, 0, 0)


class _Movement:
    """Tells whether something that waits still moves. Times are in seconds."""

    def __init__(self, patience: float, now: float) -> None:
        self._patience = patience
        self._mark = -1
        self._since = now

    def is_over(self, mark: int, waits: bool, now: float) -> bool:
        """True if `mark` has stayed the same for too long although something `waits`."""
        if mark != self._mark or not waits:
            self._mark, self._since = mark, now
            return False
        return now - self._since >= self._patience


class PeerWatch:
    """Checks one connection from time to time. Times are in seconds.

    Silence alone does not tell a peer that is gone from one that does not read. A peer that does
    not read may drop data for which it has no room. The kernel sends the data again at intervals
    that double, and such a peer answers each time. So its silence is never longer than the current
    interval.

    The peer has to owe the same acknowledgement at two looks. After a pause of this process or of
    the machine its last one is old, though what was written since is on its way.
    """

    def __init__(
        self, channel: Channel, *, silence: float, stall_timeout: float, now: float
    ) -> None:
        self._channel = channel
        self._socket = _tcp_socket(channel.transport)
        self._silence_ms = silence * 1000
        self._owing: int | None = None
        """What was acknowledged at the last look, if more was under way then."""
        self._connection = _Movement(stall_timeout, now)
        self._response = _Movement(stall_timeout, now)

    def judge(self, now: float) -> Peer:
        """Judge the peer at the time `now`, by a monotonic clock."""
        withheld = self._channel.withheld()
        buffered = self._channel.unsent() - withheld
        account = self._account(buffered)
        patience_ms = max(self._silence_ms, account.resend_ms + _MARGIN_MS)
        owing, self._owing = self._owing, account.acknowledged if account.under_way else None
        if owing is not None and owing == self._owing and account.silent_ms >= patience_ms:
            return Peer.VANISHED
        if self._connection.is_over(account.acknowledged, buffered + account.queued > 0, now):
            return Peer.STALLED
        if self._response.is_over(self._channel.moved(), withheld > 0, now):
            return Peer.WITHHOLDS
        return Peer.PRESENT

    def _account(self, buffered: int) -> _Account:
        if self._socket is None:
            # This is not TCP. All that can be seen is whether the buffer shrinks.
            return _Account(0, 0, 0, -buffered, 0)
        if not buffered and not _outstanding(self._socket):
            return _NOTHING_WAITS
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        resend_us, *rest = _TCP_INFO.unpack(info)
        return _Account(resend_us // 1000, *rest)


def _outstanding(connection: socket.socket) -> int:
    """The bytes that the peer has not acknowledged. This costs a fifth of TCP_INFO."""
    descriptor = connection.fileno()
    if descriptor < 0:
        return 0  # closed a moment ago, and the handler is not told yet
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
