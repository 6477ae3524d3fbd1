"""How much a peer may ask for that costs it little and us more. Beyond it, the connection ends."""

from enum import Enum

BURST = 1000
PER_SECOND = 33
"""What nghttp2 allows of resets: so many at once, and so many a second after that."""


class Nuisance(Enum):
    """What is counted, each by itself."""

    PEER_RESETS = "streams reset by the peer"
    OUR_RESETS = "streams reset or refused here"
    """A peer can provoke these at will, and a reset stream no longer counts as open."""
    PINGS = "PING frames"
    SETTINGS = "SETTINGS frames"
    IDLE_FRAMES = "frames that ask for nothing"


class Patience:
    """The allowances of one connection. Times in seconds, by a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._left = dict.fromkeys(Nuisance, float(BURST))
        self._at = dict.fromkeys(Nuisance, now)

    def spend(self, nuisance: Nuisance, now: float) -> bool:
        """Count one; False if the allowance is used up."""
        earned = (now - self._at[nuisance]) * PER_SECOND
        self._at[nuisance] = now
        self._left[nuisance] = min(BURST, self._left[nuisance] + earned) - 1
        return self._left[nuisance] >= 0
