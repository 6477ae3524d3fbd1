"""Work that seems stuck: jobs in flight for much longer than those of their type usually are.

Of a type that has seldom run, the runs of its queue are what is usual.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from zq.engine.delivery.streams import Streams
from zq.features.diagnosis.model_findings import Finding, FindingCode, Severity
from zq.features.trends.model import HOUR_MS, MINUTE_MS, TrendRange, quantile
from zq.features.trends.service import Trends
from zq.features.trends.service_types import TypeTrends
from zq.features.waits.store import WaitReads
from zq.model.clock import Clock
from zq.model.job import JobRecord
from zq.model.reach import EVERYWHERE, Reach
from zq.service.services import Services
from zq.store.api import Store

LEAST_MS = MINUTE_MS
"""No job that runs for a shorter time is called stuck."""

UNKNOWN_MS = HOUR_MS
"""The longest usual run of a queue in which nothing has ended within a day."""

FACTOR = 2
"""Beyond this many times the p99 of the runs of its type, a run is not usual any more."""

MOST_LOOKED_AT = 500
MOST_QUEUES = 20
EVERY_MS = 30_000


class StuckJob(NamedTuple):
    """A job in flight, the worker that has it, if that has a name, and how long runs usually take.

    99 % of the runs of its type took at most `p99_ms`, if that is known.
    """

    job: JobRecord
    worker: str | None
    p99_ms: float | None

    def times_over(self, now: int) -> float:
        """How many times as long as its p99 it runs; 0 if that is not known."""
        return (now - (self.job.dequeued_at or now)) / self.p99_ms if self.p99_ms else 0.0


class StuckKnown(NamedTuple):
    """The jobs that seem stuck, by their keys, and a line for each queue that has any."""

    keys: frozenset[int] = frozenset()
    findings: Sequence[Finding] = ()


class StuckWork:
    """Finds them. It reads a bounded number of rows, and no tick waits for that."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The jobs of a server that run for too long."""
        trends, type_trends = services[Trends], services[TypeTrends]
        return cls(services.store, services.clock, trends, type_trends, services.engine.streams)

    def __init__(
        self,
        store: Store,
        clock: Clock,
        trends: Trends,
        type_trends: TypeTrends,
        streams: Streams,
    ) -> None:
        self._reads = store.reads.of(WaitReads)
        self._clock = clock
        self._trends = trends
        self._type_trends = type_trends
        self._streams = streams
        self._looked = float("-inf")
        self._known = StuckKnown()

    async def find(self, reach: Reach, limit: int) -> list[StuckJob]:
        """The jobs that have run for the longest time, the longest first."""
        now = self._clock.now_ms()
        jobs = await self._reads.running_long(reach, now - LEAST_MS, MOST_LOOKED_AT)
        usual: dict[str, float | None] = {}
        by_type: dict[str, dict[str, float]] = {}
        found = list[StuckJob]()
        for job in jobs:
            if job.queue not in usual:
                if len(usual) == MOST_QUEUES:
                    continue
                runs = (await self._trends.series(job.queue, TrendRange.DAY, EVERYWHERE)).sum.run
                usual[job.queue] = quantile(runs, 0.99)
                by_type[job.queue] = await self._type_trends.usual_ms(job.queue)
            p99 = by_type[job.queue].get(job.type, usual[job.queue])
            longest = UNKNOWN_MS if p99 is None else max(FACTOR * p99, LEAST_MS)
            if now - (job.dequeued_at or now) > longest:
                worker = job.claimant or self._streams.name_of(job.holder)
                found.append(StuckJob(job, worker, p99))
        return found[:limit]

    async def read(self) -> StuckKnown:
        """The jobs that seem stuck, as of the last look. Looks are rare."""
        now = self._clock.now_ms()
        if now - self._looked >= EVERY_MS:
            self._looked = now
            found = await self.find(EVERYWHERE, MOST_LOOKED_AT)
            keys = frozenset(stuck.job.key for stuck in found)
            self._known = StuckKnown(keys, list(_lines(found, now)))
        return self._known


def _lines(found: Sequence[StuckJob], now: int) -> Iterator[Finding]:
    by_queue: dict[str, list[StuckJob]] = {}
    for stuck in found:
        by_queue.setdefault(stuck.job.queue, []).append(stuck)
    for queue, those in by_queue.items():
        since = min(stuck.job.dequeued_at or 0 for stuck in those)
        yield Finding(
            *(Severity.WARNING, FindingCode.STUCK, _text(those, now), queue, since, len(those))
        )


def _text(those: Sequence[StuckJob], now: int) -> str:
    """The text about the stuck jobs of a queue."""
    text = f"{len(those):,} jobs run" if len(those) > 1 else "1 job runs"
    worst = max(those, key=lambda stuck: stuck.times_over(now))
    if worst.p99_ms:
        times = worst.times_over(now)
        text += f" up to {times:,.0f} times as long as its p99 of {_span(worst.p99_ms)}"
    else:
        text += " for more than an hour"
    workers = sorted({stuck.worker for stuck in those if stuck.worker is not None})
    if workers:
        text += f", on {workers[0]}" + (f" and {len(workers) - 1} more" if workers[1:] else "")
    return text


def _span(ms: float) -> str:
    if ms < 1000:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.0f} s" if ms < 2 * MINUTE_MS else f"{ms / MINUTE_MS:.0f} min"
