"""Queues as a tree: names that go on alike after a delimiter are one row until it is opened."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zq.engine.news.figures import QueueFlow
from zq.model.lifecycle import Status
from zq.service.overview import WatchedQueue
from zq.service.queues import QueueStatistics

DELIMITERS = ".:/"


class Branch(NamedTuple):
    """The queues whose names begin alike, as if they were one queue. `orphans` have no worker."""

    sum: WatchedQueue
    queues: int
    paused: int
    orphans: int


def branches(
    queues: Iterable[WatchedQueue], under: str
) -> tuple[list[WatchedQueue], dict[str, Branch]]:
    """The rows one level below a prefix: single queues, and sums of branches, by their prefixes."""
    found = dict[str, list[WatchedQueue]]()
    rows = list[WatchedQueue]()
    for queue in queues:
        name = queue.figures.queue
        if not name.startswith(under):
            continue
        places = [at for each in DELIMITERS if (at := name.find(each, len(under))) >= 0]
        if places and (prefix := name[: min(places) + 1]) != name:
            found.setdefault(prefix, []).append(queue)
        else:
            rows.append(queue)
    # What would lead to a single queue is that queue.
    rows += [each[0] for each in found.values() if len(each) == 1]
    together = {p: _branch(p, each) for p, each in found.items() if len(each) > 1}
    return rows + [branch.sum for branch in together.values()], together


def _branch(prefix: str, queues: Sequence[WatchedQueue]) -> Branch:
    counts = Counter[Status]()
    for queue in queues:
        counts.update(queue.figures.counts)
    figures = [queue.figures for queue in queues]
    since = [each.oldest_ready_at for each in figures if each.oldest_ready_at is not None]
    ages = [each.oldest_ready_age_ms for each in figures if each.oldest_ready_age_ms is not None]
    whole = QueueStatistics(
        prefix,
        counts,
        max(ages, default=None),
        _together(each.deliveries for each in figures),
        _together(each.completions for each in figures),
        _together(each.failures for each in figures),
        min(since, default=None),
    )
    paused = [queue for queue in queues if queue.settings is not None and queue.settings.paused]
    orphans = [
        queue
        for queue in queues
        if queue.waiting
        and not queue.workers
        and not queue.figures.deliveries.minute
        and not (queue.settings is not None and queue.settings.paused)
    ]
    workers = max(queue.workers for queue in queues)
    return Branch(WatchedQueue(whole, None, workers), len(queues), len(paused), len(orphans))


def _together(flows: Iterable[QueueFlow]) -> QueueFlow:
    each = list(flows)
    return QueueFlow(
        sum(flow.total for flow in each),
        sum(flow.minute for flow in each),
        sum(flow.five_minutes for flow in each),
    )
