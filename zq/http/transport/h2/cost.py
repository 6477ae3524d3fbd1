"""The cost of a frame to the server, and the nuisance that it is."""

from zq.http.transport.abuse import FULL_FRAME, Nuisance
from zq.http.transport.h2.frames import HEAD_SIZE, Flag, Frame, FrameKind
from zq.http.transport.turns import FRAME_COST, REQUEST_COST

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
