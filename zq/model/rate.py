"""Token buckets: how many jobs of a queue may be delivered now."""

import math

LEAST_WAIT_S = 0.010
"""A fast bucket opens for several tokens at once, so that not every token costs a tick."""

_ROUNDING = 1e-6


class Bucket:
    """Fills with `rate` tokens a second, up to a second's worth and at least one; begins full.

    All times are monotonic seconds.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._most = max(rate, 1.0)
        self._level = self._most
        self._at = now

    def resume(self, level: float, seconds: float) -> None:
        """Go on with the tokens that were left some seconds ago."""
        self._level = min(level + seconds * self.rate, self._most)

    def left_after(self, count: int, now: float) -> float:
        """The tokens that are left when this many are taken out."""
        return self._level_at(now) - count

    def tokens(self, now: float) -> int:
        """How many tokens there are."""
        return math.floor(self._level_at(now) + _ROUNDING)

    def spend(self, count: int, now: float) -> None:
        """Take tokens out."""
        self._level, self._at = self.left_after(count, now), now

    def change(self, rate: float, now: float) -> None:
        """Fill at another rate from now on. The tokens stay."""
        level = self._level_at(now)
        self.rate, self._most = rate, max(rate, 1.0)
        self._level, self._at = min(level, self._most), now

    def opens(self, now: float) -> float:
        """When there will be a token again."""
        missing = max(1.0 - self._level_at(now), 0.0)
        return now + max(missing / self.rate, LEAST_WAIT_S)

    def _level_at(self, now: float) -> float:
        return min(self._level + (now - self._at) * self.rate, self._most)
