"""The body of a request: its peer may send on as far as its handler reads."""

from collections.abc import Callable
from typing import Any

from aiohttp import StreamReader

_LOW_WATER = 2**16  # aiohttp's own throttle is idle: the windows bound what waits


class Body(StreamReader):
    """Calls `acknowledge` with its stream and the bytes that were read, or will never be."""

    __slots__ = ("_acknowledge", "_number", "_unread")

    def __init__(
        self, connection: Any, number: int, acknowledge: Callable[[int, int], None]
    ) -> None:
        super().__init__(connection, _LOW_WATER)
        self._number = number
        self._acknowledge = acknowledge
        self._unread = 0

    def receive(self, data: bytes, weight: int) -> None:
        """Take the data of a frame that weighs `weight` bytes in the window, padding included."""
        self._acknowledge(self._number, weight - len(data))
        self._unread += len(data)
        self.feed_data(data)

    def discard(self) -> None:
        """Nobody reads on."""
        self._acknowledge(self._number, self._unread)
        self._unread = 0

    def _read_nowait_chunk(self, n: int) -> bytes:
        data = super()._read_nowait_chunk(n)
        self._unread -= len(data)
        self._acknowledge(self._number, len(data))
        return data
