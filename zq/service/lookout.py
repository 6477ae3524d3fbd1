"""Looks at everything that operators watch. A look costs as much as has changed since the last."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from zq.engine.news.changes import QueueChanges
from zq.model.clock import Clock
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings
from zq.model.trends import REST, TrendFlow
from zq.service.admin import Admin, OpenStream
from zq.service.diagnosis import (
    OLD_MS,
    Finding,
    ServerFacts,
    findings_of_queue,
    findings_of_server,
    worst_first,
)
from zq.service.overview import Overview, WatchedQueue
from zq.service.queues import Queues
from zq.service.status import StatusBoard, StatusLook
from zq.service.stuck import StuckWork
from zq.service.trends import Trends

AT_A_TIME = 100
"""How many queues are judged before other tasks get a turn."""

RATES_MS = 5_000
"""After this time, queues with traffic are looked at anew: their rates fall also without a tick."""

ROUND = 60
"""After this many looks each queue was looked at anew, changed or not."""


class _Crew(NamedTuple):
    """How many streams take from each queue by name, and how many from all queues."""

    by_queue: Counter[str]
    everywhere: int

    def of(self, queue: str) -> int:
        return self.by_queue[queue] + self.everywhere


class _Board:
    """The queues and their findings as they were seen last."""

    def __init__(self) -> None:
        self.queues: dict[str, WatchedQueue] = {}
        """Those that were read longest ago come first."""
        self.totals: Counter[Status] = Counter()
        self._findings: dict[str, list[Finding]] = {}
        self._sorted: Sequence[Finding] | None = None

    def put(self, name: str, queue: WatchedQueue | None, findings: Sequence[Finding] = ()) -> None:
        """Replace what is known of a queue; None means that there is no such queue any more."""
        if (before := self.queues.pop(name, None)) is not None:
            self.totals.subtract(before.figures.counts)
        if queue is not None:
            self.queues[name] = queue
            self.totals.update(queue.figures.counts)
        if list(findings) != self._findings.get(name, []):
            self._findings[name] = list(findings)
            self._sorted = None

    def findings(self, others: Sequence[Finding]) -> Sequence[Finding]:
        """All findings, and others that were found elsewhere, the worst first."""
        if self._sorted is None:
            self._sorted = worst_first(f for found in self._findings.values() for f in found)
        return worst_first([*others, *self._sorted]) if others else self._sorted


class Lookout:
    """Takes looks, one at a time.

    A look reads by connections of its own, so no tick waits for it. It reads the queues that have
    changed, as far as it remembers a look before.
    """

    def __init__(
        self,
        clock: Clock,
        queues: Queues,
        admin: Admin,
        status: StatusBoard,
        trends: Trends,
        changes: QueueChanges,
        stuck: StuckWork,
    ) -> None:
        self._clock = clock
        self._queues = queues
        self._admin = admin
        self._status = status
        self._trends = trends
        self._changes = changes
        self._stuck = stuck
        self.forget()

    def forget(self) -> None:
        """Remember nothing: until the next look, ticks have nothing to note."""
        self._changes.forget()
        self._board = _Board()
        self._crew = _Crew(Counter(), 0)
        self._settings: Mapping[str, QueueSettings] = {}
        self._looked_at = self._rated_at = 0
        self._flowing: set[str] = set()

    def ticks(self) -> int:
        """How many ticks there were. Without another one, little has changed."""
        return sum(self._admin.figures().tick_rows.counts)

    async def look(self) -> Overview:
        """The state of this moment. Raises `ReadTimeout` or `ReadersBusy`."""
        try:
            return await self._look()
        except BaseException:
            self.forget()
            raise

    async def _look(self) -> Overview:
        settings = await self._queues.all_settings(EVERYWHERE)
        workers = self._admin.workers(EVERYWHERE)
        crew = _crew_of(workers)
        now, changes = self._clock.now_ms(), self._changes.take()
        anew = None if changes is None else self._outdated(changes, settings, crew, now)
        if anew is None:
            self._board, self._rated_at, self._flowing = _Board(), now, self._active()
        self._settings, self._crew, self._looked_at = settings, crew, now
        await self._read(anew)
        status, board = self._status.look(), self._board
        others = [*findings_of_server(_server_facts(status)), *await self._stuck.findings()]
        queues = list(board.queues.values())
        return Overview(now, queues, workers, status, board.findings(others), +board.totals)

    async def _read(self, names: set[str] | None) -> None:
        """Read and judge the queues of these names; None means all."""
        among = None if names is None else sorted(names)
        found = await self._queues.statistics(EVERYWHERE, among, self._settings)
        flows = self._trends.flows()
        unknown = None if REST in flows else TrendFlow()
        now = self._clock.now_ms()
        for index, each in enumerate(found, 1):
            name = each.queue
            queue = WatchedQueue(
                each, self._settings.get(name), self._crew.of(name), flows.get(name, unknown)
            )
            self._board.put(name, queue, [*findings_of_queue(queue.facts(), now)])
            if not index % AT_A_TIME:
                await asyncio.sleep(0)
        for name in (names or set()).difference(each.queue for each in found):
            self._board.put(name, None)

    def _active(self) -> set[str]:
        """The queues whose rates fall while nothing happens."""
        return self._queues.active() | self._trends.flows().keys()

    def _outdated(
        self, changes: set[str], settings: Mapping[str, QueueSettings], crew: _Crew, now: int
    ) -> set[str] | None:
        """The queues of which something else is to be said than at the last look; None: all."""
        if crew.everywhere != self._crew.everywhere:
            return None
        names = changes | _differing(self._settings, settings)
        names |= _differing(self._crew.by_queue, crew.by_queue)
        if now - self._rated_at >= RATES_MS:
            flowing = self._active()
            names |= self._flowing | flowing
            self._rated_at, self._flowing = now, flowing
        old_before, old_now = self._looked_at - OLD_MS, now - OLD_MS
        names.update(
            name
            for name, queue in self._board.queues.items()
            if (since := queue.figures.oldest_ready_at) and old_before < since <= old_now
        )
        known = self._board.queues
        return names.union(islice(known, len(known) // ROUND + 1))


def _crew_of(workers: Sequence[OpenStream]) -> _Crew:
    return _Crew(
        Counter(queue for worker in workers for queue in worker.queues),
        sum(not worker.queues for worker in workers),
    )


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """The names that do not have the same in both."""
    if before == after:
        return set()
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _server_facts(status: StatusLook) -> ServerFacts:
    return ServerFacts(
        status.reached,
        status.flushes.p99,
        status.free_bytes,
        status.limits.disk_reserve,
        status.faulty,
        status.set_aside,
    )
