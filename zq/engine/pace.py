"""How large a tick may be, so that whoever comes while it runs does not wait for long."""

from collections.abc import Sequence

MOST_ROWS = 20_000
LEAST_ROWS = 250

GOAL_S = 0.020
"""A tick that takes longer makes the next one smaller."""

SMALL_ROWS = 50
SHARED_GOAL_S = 0.002
SHARED_S = 1.0
"""So much less while, within so many seconds, commands of a few rows have come: whoever sends one
waits for it, and bulks lose little by a few commits more. A slow disk lengthens it."""


FORGET = 1.05
"""By how much the shortest COMMIT that is remembered grows with every tick."""


class Pace:
    """Learns from each tick how large the next one may be."""

    def __init__(self) -> None:
        self.rows = self.beside = MOST_ROWS
        """Rows that the next tick may have, and those that take no longer than the disk anyway."""
        self._shared_until = float("-inf")
        self._disk_s = float("inf")

    def learn(self, now: float, work_s: float, commit_s: float, weights: Sequence[int]) -> None:
        """A tick took `work_s` of the processor's time; its commands weighed so many rows each.

        `commit_s` is what its COMMIT took, `now` is monotonic, all in seconds. The time of a disk,
        or of a processor that has other things to do, would not become less by smaller ticks.
        """
        # What the smallest COMMIT takes is the disk's own.
        self._disk_s = min(commit_s, self._disk_s * FORGET)
        if min(weights, default=SMALL_ROWS + 1) <= SMALL_ROWS:
            self._shared_until = now + SHARED_S
        goal = GOAL_S
        if now < self._shared_until:
            goal = min(goal, max(SHARED_GOAL_S, self._disk_s))
        if work_s > goal:
            self.rows = max(int(self.rows * goal / work_s), LEAST_ROWS)
        elif sum(weights) >= self.rows // 2:
            # What is short because it has little to do tells nothing.
            self.rows = min(self.rows * 2, MOST_ROWS)
        self.beside = int(self.rows * self._disk_s / goal)
