"""What the engine has done since it started, in plain numbers: written once a tick, never a job."""

from bisect import bisect_left
from collections.abc import Sequence

from zq.engine.committed import Committed
from zq.model.commands import Tally

_BELOW_ONE = [digit * 10.0**power for power in (-4, -3, -2, -1) for digit in (1, 2, 5)]
SECONDS = (*_BELOW_ONE, 1.0, 2.0, 5.0)
ROWS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)


class Histogram:
    """Counts observations by the least of its bounds that they do not exceed."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """One a bound, then those beyond all of them."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Stats:
    """Times in seconds."""

    def __init__(self) -> None:
        self.jobs = Tally()
        self.tick_rows = Histogram(ROWS)
        self.tick_seconds = Histogram(SECONDS)
        self.fsync_seconds = Histogram(SECONDS)

    def learn(self, committed: Committed) -> None:
        """Count a tick."""
        result = committed.result
        self.jobs.add(result.tally)
        self.tick_rows.observe(result.rows)
        self.tick_seconds.observe(committed.seconds)
        if committed.tick.durable:
            self.fsync_seconds.observe(result.flush_s)
