"""The bytes of bodies that a peer may still send, for a codec that does not limit them itself."""

from struct import Struct

from zq.http.transport.h2.codec import CONNECTION_WINDOW, STREAM_WINDOW
from zq.http.transport.h2.frames import FrameKind, make

_SIZE = Struct(">I")


class _ByteWindow:
    """Bytes that may come, and bytes that were read and are not granted again yet."""

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
    """The windows of one connection and of its streams that send a body."""

    def __init__(self) -> None:
        self._connection = _ByteWindow(CONNECTION_WINDOW)
        self._streams: dict[int, _ByteWindow] = {}

    def take(self, number: int, weight: int) -> bool:
        """Count a frame; False if a window did not allow it."""
        stream = self._streams.get(number)
        if stream is None:
            stream = self._streams[number] = _ByteWindow(STREAM_WINDOW)
        stream.left -= weight
        self._connection.left -= weight
        return stream.left >= 0 and self._connection.left >= 0

    def give(self, number: int, size: int) -> bytes:
        """The frames that let as many bytes come again, once they are worth sending."""
        frames = self._connection.give(0, size)
        if (stream := self._streams.get(number)) is not None:
            frames += stream.give(number, size)
        return frames

    def forget(self, number: int) -> None:
        """No more bytes will come on a stream."""
        self._streams.pop(number, None)


def window_update(number: int, size: int) -> bytes:
    """The frame that opens a window by `size` bytes."""
    return make(FrameKind.WINDOW_UPDATE, number, _SIZE.pack(size))
