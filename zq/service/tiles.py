"""The few figures that say how a server is: what waits, runs, fails and is dead."""

from typing import NamedTuple

from zq.model.lifecycle import Status
from zq.model.trends import TrendFlow
from zq.service.overview import Overview


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
    waiting = totals.get(Status.READY, 0)
    return Tiles(
        waiting,
        flow.arrivals - flow.ends,
        flow.drained_ms(waiting),
        _oldest(overview),
        sum(worker.busy for worker in workers),
        sum(worker.concurrency for worker in workers),
        len(workers),
        sum(worker.silent for worker in workers),
        flow.arrivals,
        flow.ends,
        _failed_share(overview),
        totals.get(Status.DEAD, 0),
        60 * sum(each.died for each in flows),
    )


def _oldest(overview: Overview) -> OldestJob | None:
    waiting = (
        (since, queue.figures.queue)
        for queue in overview.queues
        if (since := queue.figures.oldest_ready_at) is not None
    )
    found = min(waiting, default=None)
    return None if found is None else OldestJob(found[1], found[0])


def _failed_share(overview: Overview) -> float | None:
    completed = failed = 0.0
    for queue in overview.queues:
        completed += queue.figures.completions.five_minutes
        failed += queue.figures.failures.five_minutes
    attempts = completed + failed
    return failed / attempts if attempts else None
