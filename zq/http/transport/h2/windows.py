"""Counts the bytes of bodies that a peer may still send, for a codec that does not count them."""

from struct import Struct

from zq.http.transport.h2.codec import CONNECTION_WINDOW, STREAM_WINDOW
from zq.http.transport.h2.frames import FrameKind, make

_SIZE = Struct(">I")


class _ByteWindow:
    """The bytes that may still arrive, and the bytes that were read but not granted again."""

    __slots__ = ("due", "left", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = size
        self.due = 0

    def give(self, number: int, size: int) -> bytes:
        self.due += size
        if 2 * self.due < self.size:
            return b""
        self.left, due, self.due = self.left + self.due, self.due, 0
        return window_update(number, due)


class ReceiveWindows:
    """The windows of one connection and of those of its streams that receive a body."""

    def __init__(self) -> None:
        self._connection = _ByteWindow(CONNECTION_WINDOW)
        self._streams: dict[int, _ByteWindow] = {}

    def take(self, number: int, weight: int) -> bool:
        """Count a frame. Return False if a window did not allow it."""
        stream = self._streams.get(number)
        if stream is None:
            stream = self._streams[number] = _ByteWindow(STREAM_WINDOW)
        stream.left -= weight
        self._connection.left -= weight
        return stream.left >= 0 and self._connection.left >= 0

    def give(self, number: int, size: int) -> bytes:
        """The frames that grant read bytes again. There are none until enough have gathered."""
        frames = self._connection.give(0, size)
        if (stream := self._streams.get(number)) is not None:
            frames += stream.give(number, size)
        return frames

    def forget(self, number: int) -> None:
        """Drop the window of a stream on which no more bytes will arrive."""
        self._streams.pop(number, None)


def window_update(number: int, size: int) -> bytes:
    """The frame that opens a window by `size` bytes."""
    return make(FrameKind.WINDOW_UPDATE, number, _SIZE.pack(size))
