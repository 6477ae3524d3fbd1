"""Queues as a tree: names that go on alike after a delimiter are one row until it is opened."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from zq.engine.subscribers.figures import NO_FLOW, QueueFlow
from zq.engine.turns import Turns
from zq.features.diagnosis.model import Finding, FindingCode, place_of
from zq.features.diagnosis.service_watched import QueueWorkers, WatchedQueue
from zq.features.trends.model import TrendFlow
from zq.model.lifecycle import Status
from zq.service.queues import QueueStatistics

DELIMITERS = ".:/"

AT_A_TIME = 500
"""The queues that are added in one turn of the event loop."""


class Branch(NamedTuple):
    """The queues whose names begin alike, as if they were one queue. `orphans` have no worker."""

    sum: WatchedQueue
    queues: int
    paused: int
    orphans: int


async def branches(
    queues: Sequence[WatchedQueue], under: str, turns: Turns
) -> tuple[list[WatchedQueue], dict[str, Branch]]:
    """The rows one level below a prefix: single queues, and sums of branches, by their prefixes."""
    found = dict[str, _Sum]()
    rows = list[WatchedQueue]()
    for index, queue in enumerate(queues, 1):
        if not index % AT_A_TIME:
            await turns.next()
        name = queue.figures.queue
        if not name.startswith(under):
            continue
        places = [at for each in DELIMITERS if (at := name.find(each, len(under))) >= 0]
        if places and (prefix := name[: min(places) + 1]) != name:
            if prefix not in found:
                found[prefix] = _Sum(queue)
            found[prefix].add(queue)
        else:
            rows.append(queue)
    # What would lead to a single queue is that queue.
    rows += [each.first for each in found.values() if each.queues == 1]
    together = {p: each.branch(p) for p, each in found.items() if each.queues > 1}
    return rows + [branch.sum for branch in together.values()], together


class _Sum:
    """The figures of the queues of one branch, added queue by queue."""

    def __init__(self, first: WatchedQueue) -> None:
        self.first = first
        self.queues = self._paused = self._orphans = 0
        self._taken_by = QueueWorkers()
        self._worst = list[Finding]()
        self._counts = Counter[Status]()
        self._age: int | None = None
        self._since: int | None = None
        self._deliveries = self._completions = self._failures = NO_FLOW
        self._arrivals = self._ends = 0.0

    def add(self, queue: WatchedQueue) -> None:
        """Add one queue."""
        figures = queue.figures
        self.queues += 1
        for status, count in figures.counts.items():
            self._counts[status] += count
        if (age := figures.oldest_ready_age_ms) is not None:
            self._age = max(age, self._age or 0)
        if (since := figures.oldest_ready_at) is not None:
            self._since = since if self._since is None else min(since, self._since)
        self._deliveries = _together(self._deliveries, figures.deliveries)
        self._completions = _together(self._completions, figures.completions)
        self._failures = _together(self._failures, figures.failures)
        self._taken_by = max(self._taken_by, queue.taken_by)
        if queue.flow is not None:
            self._arrivals += queue.flow.arrivals
            self._ends += queue.flow.ends
        if queue.worst is not None:
            self._worst = [min([*self._worst, queue.worst], key=place_of)]
        if queue.settings is not None and queue.settings.paused:
            self._paused += 1
        elif queue.state is FindingCode.NO_WORKER:
            self._orphans += 1

    def branch(self, prefix: str) -> Branch:
        """All of them as if they were one queue."""
        whole = QueueStatistics(
            *(prefix, self._counts, self._age),
            *(self._deliveries, self._completions, self._failures),
            self._since,
        )
        flow = TrendFlow(self._arrivals, self._ends)
        row = WatchedQueue(whole, None, self._taken_by, flow).with_findings(self._worst)
        return Branch(row, self.queues, self._paused, self._orphans)


def _together(one: QueueFlow, other: QueueFlow) -> QueueFlow:
    if other is NO_FLOW:
        return one
    return QueueFlow(
        one.total + other.total,
        one.minute + other.minute,
        one.five_minutes + other.five_minutes,
    )
