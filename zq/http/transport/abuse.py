"""Limits on what costs a peer little and the server more. A peer beyond a limit is cut off.

turns.py keeps such a peer from holding up the others. These limits end a connection that does no
work at all: its frames and lines ask for nothing, or hardly anything is in them.
"""

from enum import Enum

BURST = 1000
PER_SECOND = 33
"""nghttp2 has these limits for resets: this many at once, and then this many a second."""

FULL_FRAME = 16
"""A frame of HTTP/2 with this many bytes of a body or of a head costs its peer no patience. A
smaller one costs the part that is missing, and a larger one earns what it has more."""

WINDOWS_PER_FRAME = 2
"""The WINDOW_UPDATE frames that answer one frame of the server: one for its stream, one for the
connection."""

MOST_EMPTY = 256 * 1024
"""A connection of HTTP/1.1 may send this many bytes without a request or the content of a body:
blank lines, the sizes and extensions of chunks, trailers. A body's framing may also be as long as
its content, which chunks of five bytes are."""


class Nuisance(Enum):
    """The kinds of nuisance in HTTP/2. Each is counted by itself."""

    PEER_RESETS = "streams reset by the peer"
    OUR_RESETS = "streams reset or refused here"
    """A peer can provoke these at will, and a reset stream no longer counts as open."""
    PINGS = "PING frames"
    SETTINGS = "SETTINGS frames"
    IDLE_FRAMES = "frames that ask for nothing"
    SMALL_FRAMES = "frames with hardly anything in them"
    WINDOWS = "WINDOW_UPDATE frames"


class AbuseLimits:
    """The remaining allowance of one connection. Times are in seconds, by a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._left = dict.fromkeys(Nuisance, float(BURST))
        self._at = dict.fromkeys(Nuisance, now)

    def spend(self, nuisance: Nuisance, now: float, count: float = 1) -> bool:
        """Count a nuisance. Return False if there were too many.

        A `count` below 0 earns something back, but no more than a burst.
        """
        left = self._left[nuisance]
        if left < BURST:
            left = min(BURST, left + (now - self._at[nuisance]) * PER_SECOND)
        self._at[nuisance] = now
        if count > 0:
            left -= count
        elif left < BURST:
            left = min(BURST, left - count)
        self._left[nuisance] = left
        return left >= 0

    def allow(self, nuisance: Nuisance, count: float) -> None:
        """Allow more of a nuisance than a burst, since the server has given a reason for it."""
        self._left[nuisance] += count
