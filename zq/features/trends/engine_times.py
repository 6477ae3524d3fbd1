"""How long jobs of each queue have waited and run since the start."""

from collections.abc import Mapping

from zq.features.trends.engine_step import OpenTrends
from zq.features.trends.model import REST, Trend

MOST_NAMED = 50
"""How many queues are counted by name. What a scrape costs must not grow with the queues."""


class QueueTimes:
    """Adds up the steps that are over. Only the times in its trends are of use.

    A queue keeps its name: what was once counted never becomes less.
    """

    def __init__(self, step: OpenTrends) -> None:
        self._open = step
        self._sums: dict[str, Trend] = {}

    def add(self, step: Mapping[str, Trend]) -> None:
        """Add a step that is over."""
        for queue, trend in step.items():
            self._of(queue).add(trend)

    def sums(self) -> dict[str, Trend]:
        """All so far. `REST` stands for all queues without a name."""
        found: dict[str, Trend] = {}
        self._open.add_up()
        for queue in self._open.trends:
            self._of(queue)
        for queue, trend in (*self._sums.items(), *self._open.trends.items()):
            name = queue if queue in self._sums else REST
            found.setdefault(name, Trend()).add(trend)
        return found

    def _of(self, queue: str) -> Trend:
        if queue not in self._sums and len(self._sums) >= MOST_NAMED:
            queue = REST
        return self._sums.setdefault(queue, Trend())
