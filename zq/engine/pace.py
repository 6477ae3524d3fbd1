"""How large a tick may be, so that whoever comes while it runs does not wait for long."""

from operator import attrgetter

from zq.engine.after_commit import Committed
from zq.model.commands import Enqueue

MOST_ROWS = 20_000
LEAST_ROWS = 250

GOAL_S = 0.020
"""A tick that takes longer makes the next one smaller."""

SHARED_GOAL_S = 0.005
SHARED_S = 1.0
"""So much less while, within so many seconds, both new jobs and anything else have come: bulks of
new jobs lose little by a few commits more, and what comes beside them is waited for, one by one.
Acknowledgements alone are as large as those who send them like to wait for. A slow disk lengthens
it."""


_ROWS = attrgetter("rows")

FORGET = 1.05
"""By how much the shortest flush that is remembered grows with every tick."""


class Pace:
    """Learns from each tick how large the next one may be."""

    def __init__(self) -> None:
        self.rows = self.beside = MOST_ROWS
        """Rows that the next tick may have, and those that take no longer than the disk anyway."""
        self._new_until = self._rest_until = float("-inf")
        self._disk_s = float("inf")

    def learn(self, committed: Committed) -> None:
        """See how long a tick took for what it weighed, and which kinds of commands it had."""
        tick = committed.tick
        batch = tick.commands
        self.note(
            tick.monotonic,
            committed.seconds,
            committed.result.flush_s,
            sum(map(_ROWS, committed.requests)),
            # In a batch new jobs come last.
            new=bool(batch) and type(batch[-1]) is Enqueue,
            rest=bool(batch) and type(batch[0]) is not Enqueue,
        )

    def note(
        self, now: float, seconds: float, flush_s: float, rows: int, *, new: bool, rest: bool
    ) -> None:
        """A tick that weighed so many rows took `seconds`, of which its flush took `flush_s`.

        It had new jobs or not, and the rest or not. `now` is monotonic, in seconds.
        """
        # What the disk takes for the smallest flush it takes whatever the size of a tick.
        self._disk_s = min(flush_s, self._disk_s * FORGET)
        seconds -= self._disk_s
        if new:
            self._new_until = now + SHARED_S
        if rest:
            self._rest_until = now + SHARED_S
        goal = GOAL_S
        if now < min(self._new_until, self._rest_until):
            goal = min(goal, max(SHARED_GOAL_S, self._disk_s))
        if seconds > goal:
            self.rows = max(int(self.rows * goal / seconds), LEAST_ROWS)
        elif rows * 2 >= self.rows:  # what is short because it has little to do tells nothing
            self.rows = min(self.rows * 2, MOST_ROWS)
        self.beside = int(self.rows * self._disk_s / goal)
