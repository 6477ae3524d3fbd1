"""Judges queues: what is wrong with each, from its figures, settings and workers."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

from zq.engine.delivery.streams import Streams
from zq.engine.leaving import LeavingQueues
from zq.engine.subscribers.figures import NO_FLOW
from zq.features.devices.store import DeviceReads
from zq.features.diagnosis.model import (
    FAILING_SHARE,
    Beginning,
    Finding,
    FindingCode,
    Severity,
    due_at,
    findings_of_devices,
    findings_of_lanes,
    findings_of_queue,
    is_failing,
)
from zq.features.diagnosis.service_watched import QueueWorkers, WatchedQueue
from zq.features.forward.service import Lanes
from zq.features.trends.model import (
    HOUR_MS,
    MINUTE_MS,
    REST,
    TrendAt,
    TrendFlow,
    TrendRange,
    quantile,
)
from zq.features.trends.service import Marks, Trends, TypeTrends
from zq.features.waits.model import BudgetLine, budget_text
from zq.features.waits.store import WaitReads
from zq.model.clock import Clock
from zq.model.job import JobRecord
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.service.admin import Admin, OpenStream
from zq.service.queues import QueueStatistics
from zq.service.services import Services
from zq.store.api import Store

KEPT_MS = MINUTE_MS
MOST_KEPT = 1_000

MOST_READS = 10
"""The most queues whose hours one question reads; the others are known later."""

MARK_MS = 10 * MINUTE_MS
"""The longest time in ms between a mark and the failures that are told with it."""

BUCKET_MS = 5 * MINUTE_MS


class _Hour(NamedTuple):
    """An hour as it was read at an elapsed time (ms): its minutes, and how many jobs waited."""

    read_at: int
    points: Sequence[TrendAt]
    line: list[int]


class Lookback:
    """Remembers the hours that were asked for."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.clock, services[Trends], services[Marks])

    def __init__(self, clock: Clock, trends: Trends, marks: Marks) -> None:
        self._clock = clock
        self._trends = trends
        self._marks = marks
        self._hours: dict[str | None, _Hour] = {}
        self._failed_at = float("-inf")
        self._failed: float | None = None

    async def failing(self, queue: str, waiting: int) -> Beginning:
        """Since when a queue fails, as far back as an hour, and the mark before that."""
        since = None
        for point in reversed((await self._hour(queue, waiting)).points):
            attempts = point.trend.completed + point.trend.failed
            if attempts and point.trend.failed < FAILING_SHARE * attempts:
                break
            if attempts:
                since = point.at
        if since is None:
            return Beginning()
        marks = await self._marks.since(since - MARK_MS)
        before = [mark.text for mark in marks if mark.at < since + MINUTE_MS]
        return Beginning(since, before[-1] if before else "")

    async def failed_before(self) -> float | None:
        """The share of the attempts of all queues that failed in the hour before the last one."""
        at = self._clock.elapsed_ms()
        if at - self._failed_at >= KEPT_MS:
            now = self._clock.now_ms()
            series = await self._trends.series(None, TrendRange.DAY, EVERYWHERE)
            before = [p.trend for p in series.points if HOUR_MS < now - p.at <= 2 * HOUR_MS]
            attempts = sum(trend.completed + trend.failed for trend in before)
            failed = sum(trend.failed for trend in before)
            self._failed_at, self._failed = at, failed / attempts if attempts else None
        return self._failed

    async def waiting(self, now_waiting: dict[str | None, int]) -> dict[str | None, list[int]]:
        """How many jobs waited every five minutes of the last hour, as far as that is known.

        `now_waiting` says how many wait now, by queue; None stands for all queues. Before, there
        were fewer by what has come since then, and more by what has ended. The answer is up to a
        minute old, so that it seldom changes.
        """
        reads, found = 0, dict[str | None, list[int]]()
        for queue, waiting in now_waiting.items():
            if not self._is_known(queue):
                reads += 1
                if reads > MOST_READS:
                    continue
            found[queue] = (await self._hour(queue, waiting)).line
        return found

    def _is_known(self, queue: str | None) -> bool:
        hour = self._hours.get(queue)
        return hour is not None and self._clock.elapsed_ms() - hour.read_at < KEPT_MS

    async def _hour(self, queue: str | None, waiting: int) -> _Hour:
        if not self._is_known(queue):
            points = (await self._trends.series(queue, TrendRange.HOUR, EVERYWHERE)).points
            self._hours.pop(queue, None)
            read_at = self._clock.elapsed_ms()
            self._hours[queue] = _Hour(read_at, points, _line(points, waiting))
            if len(self._hours) > MOST_KEPT:
                del self._hours[next(iter(self._hours))]
        return self._hours[queue]


def _line(points: Sequence[TrendAt], waiting: int) -> list[int]:
    """The numbers of waiting jobs at the ends of the five minutes of an hour, the last one now."""
    found = [waiting]
    last = points[-1].at if points else 0
    for bucket in range(HOUR_MS // BUCKET_MS - 1):
        end = last - bucket * BUCKET_MS
        some = [p.trend for p in points if end - BUCKET_MS < p.at <= end]
        waiting += sum(trend.left - trend.enqueued for trend in some)
        found.append(max(waiting, 0))
    return found[::-1]


AT_A_TIME = 100
"""How many queues are judged before other tasks get a turn."""

MOST_LOOKED_BACK = 20
"""The most failing queues for which it is found out, at a time, since when they fail."""

_NOBODY = QueueWorkers()


class WorkersByQueue:
    """The streams that take from each queue by name, and from all queues of a reach."""

    def __init__(self, workers: Iterable[OpenStream] = ()) -> None:
        self.by_queue: dict[str, QueueWorkers] = {}
        self.ranging: dict[Reach, QueueWorkers] = {}
        for worker in workers:
            one = QueueWorkers(1, worker.concurrency)
            for queue in worker.queues:
                self.by_queue[queue] = self.by_queue.get(queue, _NOBODY).with_others(one)
            if not worker.queues:
                others = self.ranging.get(worker.reach, _NOBODY)
                self.ranging[worker.reach] = others.with_others(one)

    def of(self, queue: str) -> QueueWorkers:
        """The workers that take from a queue."""
        found = self.by_queue.get(queue, _NOBODY)
        for reach, others in self.ranging.items():
            if reach.covers(queue):
                found = found.with_others(others)
        return found


class JudgedQueue(NamedTuple):
    """A queue, and all that is wrong with it."""

    queue: WatchedQueue
    findings: Sequence[Finding]


class QueueJudge:
    """Judges many queues in slices."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(
            *(services.clock, services.admin, services[Trends], services[Lookback]),
            *(services.engine.leaving, services.since),
        )

    def __init__(
        self,
        clock: Clock,
        admin: Admin,
        trends: Trends,
        lookback: Lookback,
        leaving: LeavingQueues,
        began: int,
    ) -> None:
        """`began` is when the server was started, in milliseconds."""
        self.leaving = leaving
        self._clock = clock
        self._admin = admin
        self._trends = trends
        self._lookback = lookback
        self._began = began

    async def judge(
        self,
        found: Sequence[QueueStatistics],
        settings: Mapping[str, QueueSettings],
        takers: WorkersByQueue,
    ) -> list[JudgedQueue]:
        """The queues with what is wrong with them, in their order."""
        flows = self._trends.flows()
        unknown = None if REST in flows else TrendFlow()
        now, looked_back = self._clock.now_ms(), 0
        judged = list[JudgedQueue]()
        for figures in found:
            name, taken_by = figures.queue, takers.of(figures.queue)
            if not taken_by.workers:
                taken_by = QueueWorkers(alone_since=max(self._admin.left_at(name), self._began))
            queue = WatchedQueue(figures, settings.get(name), taken_by, flows.get(name, unknown))
            facts = queue.facts._replace(leaves=self.leaving.covers(name))
            fails = figures.failures is not NO_FLOW and is_failing(facts)
            if fails and looked_back < MOST_LOOKED_BACK:
                looked_back += 1
                facts = facts._replace(failing=await self._lookback.failing(name, facts.ready))
            findings = list(findings_of_queue(facts, now))
            queue = queue._replace(due=due_at(facts, now)).with_findings(findings)
            judged.append(JudgedQueue(queue, findings))
            if not len(judged) % AT_A_TIME:
                await asyncio.sleep(0)
        return judged


LEAST_MS = MINUTE_MS
"""No job that runs for a shorter time is called stuck."""

UNKNOWN_MS = HOUR_MS
"""The longest usual run of a queue in which nothing has ended within a day."""

FACTOR = 2
"""Beyond this many times the p99 of the runs of its type, a run is not usual any more."""

MOST_LOOKED_AT = 500
MOST_QUEUES = 20
STUCK_EVERY_MS = 30_000


class StuckJob(NamedTuple):
    """A job in flight, the worker that has it, if that has a name, and how long it runs.

    99 % of the runs of its type took at most `p99_ms`, if that is known.
    """

    job: JobRecord
    worker: str | None
    ran_ms: int
    p99_ms: float | None

    @property
    def times_over(self) -> float:
        """How many times as long as its p99 it runs; 0 if that is not known."""
        return self.ran_ms / self.p99_ms if self.p99_ms else 0.0


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
        self._steady = store.steady
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
            ran = self._steady.since(job.dequeued_at or now)
            if ran > longest:
                worker = job.claimant or self._streams.name_of(job.holder)
                found.append(StuckJob(job, worker, ran, p99))
        return found[:limit]

    async def read(self) -> StuckKnown:
        """The jobs that seem stuck, as of the last look. Looks are rare."""
        at = self._clock.elapsed_ms()
        if at - self._looked >= STUCK_EVERY_MS:
            self._looked = at
            found = await self.find(EVERYWHERE, MOST_LOOKED_AT)
            keys = frozenset(stuck.job.key for stuck in found)
            self._known = StuckKnown(keys, list(_lines(found)))
        return self._known


def _lines(found: Sequence[StuckJob]) -> Iterator[Finding]:
    by_queue: dict[str, list[StuckJob]] = {}
    for stuck in found:
        by_queue.setdefault(stuck.job.queue, []).append(stuck)
    for queue, those in by_queue.items():
        since = min(stuck.job.dequeued_at or 0 for stuck in those)
        yield Finding(
            *(Severity.WARNING, FindingCode.STUCK, _text(those), queue, since, len(those))
        )


def _text(those: Sequence[StuckJob]) -> str:
    """The text about the stuck jobs of a queue."""
    text = f"{len(those):,} jobs run" if len(those) > 1 else "1 job runs"
    worst = max(those, key=lambda stuck: stuck.times_over)
    if worst.p99_ms:
        times = worst.times_over
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


UNPAID_MS = MINUTE_MS
"""The time in ms for which jobs may wait for tokens before anybody is told."""

SLOW_EVERY_MS = 5_000
MOST_LINES = 1_000


class NotedFindings(NamedTuple):
    """The keys of jobs that seem stuck, and what was found."""

    stuck: frozenset[int]
    findings: Sequence[Finding]


class SlowFindings:
    """Findings that take reads. They are looked for every five seconds at most."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.clock, services[StuckWork], services[Lanes])

    def __init__(self, store: Store, clock: Clock, stuck: StuckWork, lanes: Lanes) -> None:
        self._reads = store.reads.of(WaitReads)
        self._devices = store.reads.of(DeviceReads)
        self._clock = clock
        self._stuck = stuck
        self._lanes = lanes
        self._looked = float("-inf")
        self._unpaid: Sequence[Finding] = ()
        self._of_devices: Sequence[Finding] = ()

    async def read(self, settings: Mapping[str, QueueSettings]) -> NotedFindings:
        """The findings of this kind about all queues with these settings. Those that are paused
        need no tokens."""
        stuck = await self._stuck.read()
        at = self._clock.elapsed_ms()
        if at - self._looked >= SLOW_EVERY_MS:
            now, self._looked = self._clock.now_ms(), at
            self._unpaid = list(_findings(await self._reads.unpaid_lines(MOST_LINES, now), now))
            self._of_devices = list(findings_of_devices(await self._devices.device_sums(now)))
        unpaid = [
            finding
            for finding in self._unpaid
            if not settings.get(finding.queue or "", NO_SETTINGS).paused
        ]
        of_lanes = findings_of_lanes(self._lanes.errors())
        return NotedFindings(stuck.keys, [*stuck.findings, *unpaid, *of_lanes, *self._of_devices])


def _findings(lines: Sequence[BudgetLine], now: int) -> Iterator[Finding]:
    """One for each queue with jobs that wait for tokens: of those of its jobs that are the most."""
    told = set[str]()
    for line in lines:
        is_late = line.since is not None and now - line.since >= UNPAID_MS
        if is_late and line.queue not in told:
            told.add(line.queue)
            text = f"{line.waiting:,} wait: {budget_text(line.waits[0])}"
            yield Finding(
                *(Severity.WARNING, FindingCode.BUDGET, text, line.queue),
                *(line.since, line.waiting),
            )
