"""The rules for a client's frames of a WebSocket that aiohttp does not hold it to."""

import asyncio
import struct
from typing import Any

from aiohttp.http import WebSocketError, WSCloseCode, WSMsgType

from zq.model.clock import Clock

FRAMES_A_SECOND = 50
"""The frames a second that a client may send on average: messages, their fragments, and pings."""

MOST_FRAMES = 200
"""The most frames that may come at once."""

FIN = MASK = 0x80
LENGTH = 0x7F
EXTENDED = {126: 2, 127: 8}
"""How many bytes of an extended length follow a length of this value (RFC 6455, 5.2)."""

MASKING_KEY = 4
LONGEST_HEAD = 10
"""The bytes of a head before its masking key, in a frame of the longest kind."""


def guarded(parser: Any, transport: asyncio.Transport | None, clock: Clock) -> Any:
    """A parser of frames in the place of aiohttp's, for a client that has to keep the rules."""
    return parser if transport is None else FrameGuard(parser, transport, clock)


class FrameGuard:
    """Looks at the heads of a client's frames before aiohttp's `parser` gets the bytes.

    A frame that is not masked ends the connection with 1002 (RFC 6455, 5.1), and too many frames
    end it with 1008. Nothing that arrives with or after the frame at fault is passed on.
    """

    def __init__(self, parser: Any, transport: asyncio.Transport, clock: Clock) -> None:
        """The `transport` gets the last word to a client that is at fault."""
        self._parser = parser
        self._transport = transport
        self._clock = clock
        self._head = b""
        """The beginning of a head whose rest has not arrived yet."""
        self._passing = 0
        """How many bytes of the present frame are still to come."""
        self._left: float = MOST_FRAMES
        self._scanned_at = clock.monotonic()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Pass bytes on. True means that the connection takes no more."""
        try:
            self._scan(bytes(data))
        except WebSocketError as error:
            reason = struct.pack(">H", error.code) + str(error).encode()
            self._transport.write(bytes([FIN | WSMsgType.CLOSE, len(reason)]) + reason)
            self._transport.close()
            return True, b""
        passed: tuple[bool, bytes] = self._parser.feed_data(data)
        return passed

    def feed_eof(self) -> None:
        """Pass on that nothing more comes."""
        self._parser.feed_eof()

    def _scan(self, data: bytes) -> None:
        """Pass over the frames in these bytes. Raises `WebSocketError` for one at fault."""
        now = self._clock.monotonic()
        self._left = min(self._left + (now - self._scanned_at) * FRAMES_A_SECOND, MOST_FRAMES)
        self._scanned_at = now
        data = self._head + data
        self._head, position = b"", self._passing
        while position < len(data):
            head = data[position : position + LONGEST_HEAD]
            size = _size_of(head)
            if size is None:
                self._head, position = head, len(data)
            else:
                self._count()
                position += size
        self._passing = position - len(data)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise WebSocketError(
                WSCloseCode.POLICY_VIOLATION, f"more than {FRAMES_A_SECOND} frames a second"
            )


def _size_of(head: bytes) -> int | None:
    """The size of the frame that begins so; None if more of it must be known.

    Raises `WebSocketError` if it is not masked.
    """
    if len(head) < 2:
        return None
    if not head[1] & MASK:
        raise WebSocketError(WSCloseCode.PROTOCOL_ERROR, "a client must mask its frames")
    length = head[1] & LENGTH
    begin = 2 + EXTENDED.get(length, 0)
    if len(head) < begin:
        return None
    if begin > 2:
        length = int.from_bytes(head[2:begin], "big")
    return begin + MASKING_KEY + length
