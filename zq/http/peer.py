"""Whether the peer of a long-lived response is still there, by TCP's own account."""

import asyncio
import socket
import struct
from enum import Enum

# Fields of Linux's struct tcp_info: segments sent and not acknowledged, milliseconds since the last
# acknowledgement, bytes acknowledged in all, bytes queued and not sent.
_TCP_INFO = struct.Struct("=24xI28xI60xQ16xI")


class Peer(Enum):
    """What a look at a connection finds."""

    PRESENT = "present"
    VANISHED = "vanished"
    """Data has been under way for too long without an acknowledgement: nobody can be there."""
    STALLED = "stalled"
    """Data waits and none of it was taken for too long: somebody is there and does not read."""


class PeerWatch:
    """Looks at one connection from time to time. Times in seconds.

    A peer that does not read has acknowledged all that it was sent; its window is shut and nothing
    is under way. That, and not silence, tells it from one that is gone.
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
        under_way, silent_ms, acknowledged, queued = self._account(buffered)
        if under_way and silent_ms >= self._silence_ms:
            return Peer.VANISHED
        if acknowledged != self._progress or not buffered + queued:
            self._progress, self._progress_at = acknowledged, now
        elif now - self._progress_at >= self._stall_timeout:
            return Peer.STALLED
        return Peer.PRESENT

    def _account(self, buffered: int) -> tuple[int, int, int, int]:
        if self._socket is None:
            # Not TCP: all there is to see is whether the buffer shrinks.
            return 0, 0, -buffered, 0
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        under_way, silent_ms, acknowledged, queued = _TCP_INFO.unpack(info)
        return under_way, silent_ms, acknowledged, queued


def _tcp_socket(transport: asyncio.Transport) -> socket.socket | None:
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    return connection
