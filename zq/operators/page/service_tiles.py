"""The few figures that say how a server is: what waits, runs, fails and is dead."""

from collections.abc import Iterable
from typing import NamedTuple

from zq.engine.subscribers.figures import NO_FLOW
from zq.features.trends.model import TrendFlow
from zq.model.job import MAX_TIME
from zq.model.lifecycle import Status
from zq.operators.page.service_overview import Overview, WatchedQueue


class OldestJob(NamedTuple):
    """The job that has been ready for the longest time: its queue, and since when (ms)."""

    queue: str
    since: int


class Tiles(NamedTuple):
    """The figures of one moment. Rates are in jobs a second, over five minutes."""

    waiting: int
    growth: float
    """How many more jobs come than end."""
    drained_ms: float | None
    """How long until none waits, if that goes on; None if they never become fewer."""
    oldest: OldestJob | None
    busy: int
    """How many slots of workers have a job."""
    slots: int
    workers: int
    silent: int
    """How many of them should have renewed the leases of their jobs, and have not."""
    arrived: float
    done: float
    failed: float | None
    """The share of the ended attempts that failed; None without any."""
    dead: int
    dead_per_minute: float


def tiles_of(overview: Overview) -> Tiles:
    """The figures of all that an overview shows."""
    flows, totals, workers = overview.flows.values(), overview.totals, overview.workers
    flow = TrendFlow(sum(each.arrivals for each in flows), sum(each.ends for each in flows))
    waiting, sums = totals.get(Status.READY, 0), _Sums(overview.queues)
    return Tiles(
        waiting,
        flow.arrivals - flow.ends,
        flow.drained_ms(waiting),
        sums.oldest,
        sum(worker.busy for worker in workers),
        sum(worker.concurrency for worker in workers),
        len(workers),
        sum(worker.silent for worker in workers),
        flow.arrivals,
        flow.ends,
        sums.failed,
        totals.get(Status.DEAD, 0),
        60 * sum(each.died for each in flows),
    )


class _Sums:
    """The oldest job of many queues, and how many of their attempts a second failed.

    One loop finds both, since there may be thousands of queues.
    """

    def __init__(self, queues: Iterable[WatchedQueue]) -> None:
        oldest, name = MAX_TIME, ""
        completed = failed = 0.0
        for queue in queues:
            figures = queue.figures
            since = figures.oldest_ready_at
            if since is not None and since < oldest:
                oldest, name = since, figures.queue
            if figures.completions is not NO_FLOW or figures.failures is not NO_FLOW:
                completed += figures.completions.five_minutes
                failed += figures.failures.five_minutes
        attempts = completed + failed
        self.oldest = OldestJob(name, oldest) if name else None
        self.failed = failed / attempts if attempts else None
