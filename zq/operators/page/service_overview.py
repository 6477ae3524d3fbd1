"""What operators watch at one moment: queues, workers, the server, its tiles, what is wrong."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from zq.engine.subscribers.figures import NO_FLOW
from zq.features.diagnosis.model import Finding, FindingGroup, grouped
from zq.features.diagnosis.service_watched import WatchedQueue
from zq.features.trends.model import TrendFlow
from zq.model.job import MAX_TIME
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.operators.ops.service import StatusNow
from zq.service.admin import OpenStream


class Overview(NamedTuple):
    """One moment. Times are in milliseconds."""

    at: int
    queues: Sequence[WatchedQueue]
    workers: Sequence[OpenStream]
    status: StatusNow
    findings: Sequence[Finding]
    """The findings, the worst first."""
    kinds: Sequence[FindingGroup]
    """The findings by their kinds, the worst first."""
    totals: Mapping[Status, int]
    """How many jobs there are in each status."""
    flows: Mapping[str, TrendFlow]
    """The arrivals and ends of each queue. `*` stands for those that are not told apart."""
    stuck: frozenset[int]
    """The keys of jobs that run for much longer than usual."""
    is_whole: bool = True
    """False if each queue has its counts alone, and nothing is known of what is wrong."""

    def within(self, reach: Reach) -> "Overview":
        """The part of it that lies within a reach. Findings about the server itself lie beyond."""
        if reach is EVERYWHERE:
            return self
        queues = [queue for queue in self.queues if reach.covers(queue.figures.queue)]
        findings = [f for f in self.findings if f.queue is not None and reach.covers(f.queue)]
        return self._replace(
            queues=queues,
            workers=[worker for worker in self.workers if worker.is_within(reach)],
            findings=findings,
            kinds=grouped(findings),
            totals=_totals(queues),
            flows={name: flow for name, flow in self.flows.items() if reach.covers(name)},
        )


def _totals(queues: Sequence[WatchedQueue]) -> Counter[Status]:
    totals = Counter[Status]()
    for queue in queues:
        totals.update(queue.figures.counts)
    return totals


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
