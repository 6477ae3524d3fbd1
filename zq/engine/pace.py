"""Chooses the size of ticks, so that a request during a tick does not wait long."""

from operator import attrgetter

from zq.engine.after_commit import Committed

MOST_ROWS = 20_000
LEAST_ROWS = 250

GOAL_S = 0.020
"""A tick that takes longer makes the next one smaller."""

SHARED_GOAL_S = 0.005
SHARED_S = 1.0
"""The goal in seconds while new jobs and other commands have both come within the last second. A
few more commits cost bulks of new jobs little, and the other commands do not wait long for each of
them. Without new jobs, acknowledgements may be as large as their senders can wait for. A slow disk
raises the goal."""


_ROWS = attrgetter("rows")

FORGET = 1.05
"""The shortest flush that is remembered grows by this factor with every tick."""


class Pace:
    """Learns from each tick how large the next one may be."""

    def __init__(self) -> None:
        self.rows = self.beside = MOST_ROWS
        """The rows that the next tick may have, and the rows that take no longer than the disk."""
        self._new_until = self._rest_until = float("-inf")
        self._disk_s = float("inf")

    def learn(self, committed: Committed) -> None:
        """Learn from a tick: its time, its weight, and the kinds of its commands."""
        tick = committed.tick
        batch = tick.commands
        self.note(
            tick.monotonic,
            committed.seconds,
            committed.result.flush_s,
            sum(map(_ROWS, committed.requests)),
            # New jobs and records come last in a batch.
            new=bool(batch) and batch[-1].comes_last,
            rest=bool(batch) and not batch[0].comes_last,
        )

    def note(
        self, now: float, seconds: float, flush_s: float, rows: int, *, new: bool, rest: bool
    ) -> None:
        """Learn from a tick of `rows` that took `seconds`, of which its flush took `flush_s`.

        `new` says whether it had new jobs, `rest` whether it had others. `now` is monotonic.
        """
        # The time of the smallest flush does not depend on the size of a tick.
        disk_s = self._disk_s * FORGET
        if flush_s < disk_s:
            disk_s = flush_s
        self._disk_s = disk_s
        seconds -= disk_s
        if new:
            self._new_until = now + SHARED_S
        if rest:
            self._rest_until = now + SHARED_S
        goal = GOAL_S
        if now < self._new_until and now < self._rest_until:
            goal = min(goal, max(SHARED_GOAL_S, disk_s))
        if seconds > goal:
            self.rows = max(int(self.rows * goal / seconds), LEAST_ROWS)
        elif rows * 2 >= self.rows:  # a tick that is short for lack of work proves nothing
            self.rows = min(self.rows * 2, MOST_ROWS)
        self.beside = int(self.rows * disk_s / goal)
