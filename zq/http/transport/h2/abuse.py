"""Limits on what costs a peer little and the server more. A peer beyond a limit is cut off."""

from enum import Enum

from zq.http.transport.h2.frames import HEAD_SIZE, Flag, Frame, FrameKind

BURST = 1000
PER_SECOND = 33
"""nghttp2 has these limits for resets: this many at once, and then this many a second."""


class Nuisance(Enum):
    """The kinds of nuisance. Each is counted by itself."""

    PEER_RESETS = "streams reset by the peer"
    OUR_RESETS = "streams reset or refused here"
    """A peer can provoke these at will, and a reset stream no longer counts as open."""
    PINGS = "PING frames"
    SETTINGS = "SETTINGS frames"
    IDLE_FRAMES = "frames that ask for nothing"


_ALWAYS = {
    int(FrameKind.RST_STREAM): Nuisance.PEER_RESETS,
    int(FrameKind.PING): Nuisance.PINGS,
    int(FrameKind.SETTINGS): Nuisance.SETTINGS,
}
_USEFUL = frozenset(map(int, FrameKind)) - {FrameKind.PRIORITY}
_DATA, _END_STREAM, _PADDED = int(FrameKind.DATA), int(Flag.END_STREAM), int(Flag.PADDED)


def nuisance_of(frame: Frame) -> Nuisance | None:
    """The kind that a frame counts as."""
    kind, flags, _, raw = frame
    if kind == _DATA:
        empty = not flags & _END_STREAM and not _content(flags, raw)
        return Nuisance.IDLE_FRAMES if empty else None
    if kind in _USEFUL:
        return _ALWAYS.get(kind)
    return Nuisance.IDLE_FRAMES


def _content(flags: int, raw: bytes) -> bool:
    """Whether a DATA frame holds anything but padding."""
    size = len(raw) - HEAD_SIZE
    if flags & _PADDED and size:
        return size - 1 > raw[HEAD_SIZE]
    return size > 0


class AbuseLimits:
    """What one connection may still do. Times are in seconds, by a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._left = dict.fromkeys(Nuisance, float(BURST))
        self._at = dict.fromkeys(Nuisance, now)

    def spend(self, nuisance: Nuisance, now: float) -> bool:
        """Count one nuisance. Return False if there were too many."""
        earned = (now - self._at[nuisance]) * PER_SECOND
        self._at[nuisance] = now
        self._left[nuisance] = min(BURST, self._left[nuisance] + earned) - 1
        return self._left[nuisance] >= 0
