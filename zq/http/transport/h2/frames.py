"""Splits bytes into whole frames before a codec reads them. A peer's limits count these
frames, by what they cost and the nuisance that they are."""

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct

from zq.http.transport.abuse import FULL_FRAME, Nuisance
from zq.http.transport.turns import FRAME_COST, REQUEST_COST

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The bytes that a client sends before its first frame (RFC 9113, 3.4)."""

MAX_FRAME = 16 * 1024
"""How many bytes a frame may hold. Every peer may send this much by default."""

MOST_BLOCK_FRAMES = 64
"""How many frames one block of headers may take."""

HEAD_SIZE = 9
_HEAD = Struct(">HBBBI")  # length in 24 bits, kind, flags and stream (RFC 9113, 4.1)
_KIND_AT = 3
_NUMBER = 2**31 - 1

Frame = tuple[int, int, int, bytes]
"""A frame: its kind, its flags, its stream, and all its bytes."""


class FrameKind(IntEnum):
    """The kinds of frames."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Flag(IntEnum):
    """Bits of a frame's flags. ACK belongs to SETTINGS and PING."""

    ACK = END_STREAM = 0x1
    END_HEADERS = 0x4
    PADDED = 0x8


# These are plain numbers, since the members of an enumeration are slow to compare for every frame.
_HEADERS, _CONTINUATION = int(FrameKind.HEADERS), int(FrameKind.CONTINUATION)
_END_HEADERS = int(Flag.END_HEADERS)


def make(kind: int, number: int = 0, payload: bytes = b"", flags: int = 0) -> bytes:
    """A frame to send."""
    size = len(payload)
    return _HEAD.pack(size >> 8, size & 0xFF, kind, flags, number) + payload


def whole(data: bytes) -> Iterator[Frame]:
    """The frames in bytes that hold only whole ones."""
    start = 0
    while start < len(data):
        high, low, kind, flags, number = _HEAD.unpack_from(data, start)
        stop = start + HEAD_SIZE + (high << 8 | low)
        yield kind, flags, number & _NUMBER, data[start:stop]
        start = stop


class Splitter:
    """Splits the bytes of one connection after its preface."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        """The place in the data at which the next frame begins."""
        self._block = 0

    @property
    def in_head(self) -> bool:
        """True if a head has begun and is not complete, in its first frame or in a later one."""
        at = self._at + _KIND_AT
        return self._block > 0 or self._data[at : at + 1] in (b"\x01", b"\x09")

    @property
    def endless_head(self) -> bool:
        """True if a block of headers has come in too many frames."""
        return self._block > MOST_BLOCK_FRAMES

    @property
    def has_whole(self) -> bool:
        """True if `split` would find a frame."""
        left = len(self._data) - self._at
        if left < HEAD_SIZE:
            return False
        size = int.from_bytes(self._data[self._at : self._at + _KIND_AT])
        return left >= HEAD_SIZE + size or size > MAX_FRAME

    def feed(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        rest = self._data[self._at :]
        self._data = rest + data if rest else data
        self._at = 0

    def split(self, most: int, cost_of: Callable[[int, int], int]) -> tuple[list[Frame], int]:
        """The frames that are whole now, until they cost `most`, and their cost.

        `cost_of` tells the cost of a frame by its kind and its length. The list includes what has
        arrived of a frame that is too large. A codec ends the connection when it reads the frame's
        header.
        """
        frames: list[Frame] = []
        data, start, end, cost = self._data, self._at, len(self._data), 0
        while end - start >= HEAD_SIZE and cost < most:
            high, low, kind, flags, number = _HEAD.unpack_from(data, start)
            size = high << 8 | low
            stop = start + HEAD_SIZE + size
            if stop > end and size <= MAX_FRAME:
                break
            if kind == _HEADERS or (kind == _CONTINUATION and self._block):
                self._count_block(kind, flags)
                if self.endless_head:
                    break
            frames.append((kind, flags, number & _NUMBER, data[start:stop]))
            cost += cost_of(kind, size)
            start = stop
        self._data, self._at = (data, start) if start < end else (b"", 0)
        return frames, cost

    def _count_block(self, kind: int, flags: int) -> None:
        if flags & _END_HEADERS:
            self._block = 0
        else:
            self._block = 1 if kind == _HEADERS else self._block + 1


# These are plain numbers, since the members of an enumeration are slow to compare for every frame.
_DATA, _HEADERS, _SETTINGS, _CONTINUATION = (
    int(kind)
    for kind in (FrameKind.DATA, FrameKind.HEADERS, FrameKind.SETTINGS, FrameKind.CONTINUATION)
)
_END_STREAM, _PADDED = int(Flag.END_STREAM), int(Flag.PADDED)

_NUISANCES = {
    int(FrameKind.RST_STREAM): Nuisance.PEER_RESETS,
    int(FrameKind.PING): Nuisance.PINGS,
    int(FrameKind.SETTINGS): Nuisance.SETTINGS,
    int(FrameKind.WINDOW_UPDATE): Nuisance.WINDOWS,
}


def cost_of(kind: int, size: int) -> int:
    """The cost to read a frame with `size` bytes behind its header; see turns.py for the unit."""
    if kind == _HEADERS:
        return FRAME_COST + REQUEST_COST + size
    if kind in (_CONTINUATION, _SETTINGS):
        return FRAME_COST + size
    return FRAME_COST


def nuisance_of(frame: Frame) -> tuple[Nuisance, float] | None:
    """The kind that a frame counts as, and how much it counts. Less than 0 earns something."""
    kind, flags, _, raw = frame
    if kind == _HEADERS:
        return None
    if kind == _DATA:
        if flags & _END_STREAM:
            return None
        size = _content(flags, raw)
        return Nuisance.SMALL_FRAMES, 1 - size / FULL_FRAME
    if kind == _CONTINUATION:
        return Nuisance.SMALL_FRAMES, 1 - (len(raw) - HEAD_SIZE) / FULL_FRAME
    return _NUISANCES.get(kind, Nuisance.IDLE_FRAMES), 1


def _content(flags: int, raw: bytes) -> int:
    """How many bytes of a body a DATA frame holds, without padding."""
    size = len(raw) - HEAD_SIZE
    if flags & _PADDED and size:
        return max(size - 1 - raw[HEAD_SIZE], 0)
    return size
