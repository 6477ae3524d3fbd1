"""How large a tick may be, so that whoever comes while it runs does not wait for long."""

MOST_ROWS = 20_000
LEAST_ROWS = 250

GOAL_S = 0.020
"""A tick that takes longer makes the next one smaller."""

SHARED_GOAL_S = 0.005
SHARED_S = 1.0
"""So much less while, within so many seconds, anything but new jobs has come: acknowledgements
come one by one and are waited for, bulks of jobs have lost little by a few commits more."""


class Pace:
    """Learns from each tick how many rows the next one may have."""

    def __init__(self) -> None:
        self.rows = MOST_ROWS
        self._shared_until = float("-inf")

    def learn(self, now: float, seconds: float, rows: int, *, shared: bool) -> None:
        """A tick of so many rows took `seconds` without its COMMIT, which takes its time anyway.

        `shared`: it had more than new jobs. `now` is monotonic, in seconds.
        """
        if shared:
            self._shared_until = now + SHARED_S
        goal = SHARED_GOAL_S if now < self._shared_until else GOAL_S
        if seconds > goal:
            self.rows = max(int(self.rows * goal / seconds), LEAST_ROWS)
        elif rows * 2 >= self.rows:  # what is short because it has little to do tells nothing
            self.rows = min(self.rows * 2, MOST_ROWS)
