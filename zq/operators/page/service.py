"""Looks at everything that operators watch. A look costs as much as has changed since the last."""

import asyncio
import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Self

from zq.engine.subscribers.tallies import QueueChanges
from zq.features.diagnosis.model import (
    Finding,
    FindingCode,
    FindingGroup,
    ServerFacts,
    explains,
    findings_of_server,
    grouped,
    place_of,
)
from zq.features.diagnosis.service import JudgedQueue, QueueJudge, SlowFindings, WorkersByQueue
from zq.features.diagnosis.service_watched import WatchedQueue
from zq.features.trends.service import Trends
from zq.model.clock import Clock
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings
from zq.operators.ops.service import StatusNow, StatusReader
from zq.operators.page.service_overview import Overview
from zq.service.admin import Admin
from zq.service.queues import AT_A_TIME, Queues, QueueStatistics
from zq.service.services import Services

RATES_MS = 5_000
"""After this time, queues with traffic are looked at anew: their rates fall also without a tick."""

MANY = 1_000
"""With so many queues, a look at each takes long enough to show what is known before."""

ROUND = 60
"""After this many looks each queue was looked at anew, changed or not."""


_Placed = tuple[int, str, Finding]
"""A finding of a queue, with its place and the name, by which findings are sorted."""


class _Wrong(NamedTuple):
    """All that is wrong at a moment, the worst first: one by one, and by kinds."""

    findings: Sequence[Finding]
    kinds: Sequence[FindingGroup]


class _Remembered:
    """The queues and their findings as they were seen last."""

    def __init__(self) -> None:
        self.queues: dict[str, WatchedQueue] = {}
        """The queues by name; those that were read longest ago come first."""
        self.totals: Counter[Status] = Counter()
        self._placed: dict[str, list[_Placed]] = {}
        self._sorted: list[_Placed] = []
        self._noted: Sequence[Finding] = ()
        self._wrong: _Wrong | None = None

    def put(self, name: str, judged: JudgedQueue | None) -> None:
        """Replace what is known of a queue; None means that there is no such queue any more."""
        if (before := self.queues.pop(name, None)) is not None:
            self.totals.subtract(before.figures.counts)
        if judged is not None:
            self.queues[name] = judged.queue
            self.totals.update(judged.queue.figures.counts)
        findings = () if judged is None else judged.findings
        placed = [(place_of(each), name, each) for each in findings]
        if placed == (former := self._placed.get(name, [])):
            return
        # Thousands of others keep their places.
        for each in former:
            del self._sorted[bisect_left(self._sorted, each)]
        for each in placed:
            insort(self._sorted, each)
        self._placed[name] = placed
        self._wrong = None

    def wrong(self, noted: Sequence[Finding]) -> _Wrong:
        """All findings, with those that were noted elsewhere, and without those that these
        explain."""
        if self._wrong is None or noted != self._noted:
            causes = {each.queue: each for each in noted if each.code is FindingCode.BUDGET}
            every = [
                placed
                for placed in self._sorted
                if not ((cause := causes.get(placed[1])) and explains(cause, placed[2]))
            ]
            for each in noted:
                insort(every, (place_of(each), each.queue or "", each))
            found = [each for _, _, each in every]
            self._noted, self._wrong = noted, _Wrong(found, grouped(found))
        return self._wrong


class Overviews:
    """Takes overviews, one at a time.

    One reads by connections of its own, so no tick waits for it. It reads the queues that have
    changed, as far as it remembers a look before.
    """

    @classmethod
    def of(cls, services: Services) -> Self:
        """The overviews of a server."""
        return cls(
            services.clock,
            services.queues,
            services.admin,
            services[StatusReader],
            services[Trends],
            services.engine.changes,
            services[SlowFindings],
            services[QueueJudge],
        )

    def __init__(
        self,
        clock: Clock,
        queues: Queues,
        admin: Admin,
        status: StatusReader,
        trends: Trends,
        changes: QueueChanges,
        noted: SlowFindings,
        judge: QueueJudge,
    ) -> None:
        self._clock = clock
        self._queues = queues
        self._admin = admin
        self._status = status
        self._trends = trends
        self._changes = changes
        self._noted = noted
        self._judge = judge
        self.forget()

    def forget(self) -> None:
        """Remember nothing: until the next look, ticks have nothing to note."""
        self._changes.forget()
        self._remembered = _Remembered()
        self._takers = WorkersByQueue()
        self._settings: Mapping[str, QueueSettings] = {}
        self._leaving = self._judge.leaving.patterns
        self._looked_at, self._rated_at = 0, -math.inf
        self._flowing: set[str] = set()

    def ticks(self) -> int:
        """How many ticks there were. Without another one, little has changed."""
        return sum(self._admin.figures().tick_rows.counts)

    async def take(self) -> Overview:
        """The state of this moment. Raises `ReadTimeout` or `ReadersBusy`."""
        try:
            return await self._take()
        except BaseException:
            self.forget()
            raise

    async def glance(self) -> Overview | None:
        """How many jobs wait, run and are dead, without a look at each queue.

        None if the queues are few or remembered: then a look is soon taken.
        """
        if self._remembered.queues:
            return None
        counts = await self._queues.by_queue()
        if len(counts) < MANY:
            return None
        queues, totals = list[WatchedQueue](), Counter[Status]()
        for name, each in counts.items():
            queues.append(WatchedQueue(QueueStatistics(name, each, None), None))
            totals.update(each)
            if not len(queues) % AT_A_TIME:
                await asyncio.sleep(0)
        workers, status = self._admin.workers(EVERYWHERE), self._status.read()
        return Overview(
            *(self._clock.now_ms(), queues, workers, status, (), (), totals),
            *(self._trends.flows(), frozenset()),
            is_whole=False,
        )

    async def _take(self) -> Overview:
        settings = await self._queues.all_settings(EVERYWHERE)
        workers = self._admin.workers(EVERYWHERE)
        takers = WorkersByQueue(workers)
        now, changes = self._clock.now_ms(), self._changes.take()
        anew = None if changes is None else self._outdated(changes, settings, takers, now)
        if anew is None:
            self._remembered, self._flowing = _Remembered(), self._active()
            self._rated_at = self._clock.elapsed_ms()
        self._settings, self._takers, self._looked_at = settings, takers, now
        self._leaving = self._judge.leaving.patterns
        await self._read(anew)
        status, noted = self._status.read(), await self._noted.read(settings)
        others = [*findings_of_server(_server_facts(status)), *noted.findings]
        wrong, remembered = self._remembered.wrong(others), self._remembered
        queues = _with_noted(remembered.queues.values(), noted.findings)
        return Overview(
            *(now, queues, workers, status, *wrong, +remembered.totals, self._trends.flows()),
            noted.stuck,
        )

    async def queues(self, reach: Reach, named: str | None = None) -> list[WatchedQueue]:
        """The queues within reach as they are now, or the one that is `named`, without a look."""
        settings = await self._queues.all_settings(EVERYWHERE)
        if named is None:
            found = await self._queues.statistics(reach, None, settings)
        else:
            found = [await self._queues.statistics_of(named, reach)]
        takers = WorkersByQueue(self._admin.workers(EVERYWHERE))
        judged = await self._judge.judge(found, settings, takers)
        queues = [queue for queue, _ in judged]
        return _with_noted(queues, (await self._noted.read(settings)).findings)

    async def _read(self, names: set[str] | None) -> None:
        """Read and judge the queues of these names; None means all."""
        among = None if names is None else sorted(names)
        found = await self._queues.statistics(EVERYWHERE, among, self._settings)
        for judged in await self._judge.judge(found, self._settings, self._takers):
            self._remembered.put(judged.queue.figures.queue, judged)
        for name in (names or set()).difference(each.queue for each in found):
            self._remembered.put(name, None)

    def _active(self) -> set[str]:
        """The queues whose rates fall while nothing happens."""
        return self._queues.active() | self._trends.flows().keys()

    def _outdated(
        self,
        changes: set[str],
        settings: Mapping[str, QueueSettings],
        takers: WorkersByQueue,
        now: int,
    ) -> set[str] | None:
        """The queues of which something else is to be said than at the last look; None: all."""
        left = self._admin.left_since(self._looked_at)
        if left is None or takers.ranging != self._takers.ranging:
            return None
        names = changes | left | _differing(self._settings, settings)
        names |= _differing(self._takers.by_queue, takers.by_queue)
        at = self._clock.elapsed_ms()
        if at - self._rated_at >= RATES_MS:
            flowing = self._active()
            names |= self._flowing | flowing
            self._rated_at, self._flowing = at, flowing
        known = self._remembered.queues
        if (leaving := self._judge.leaving.patterns) is not self._leaving:
            differing = leaving.differing(self._leaving)
            names.update(name for name in known if name.startswith(differing))
        names.update(
            name for name, queue in known.items() if queue.due is not None and queue.due <= now
        )
        return names.union(islice(known, len(known) // ROUND + 1))


def _with_noted(queues: Iterable[WatchedQueue], noted: Sequence[Finding]) -> list[WatchedQueue]:
    """The queues, with what else was found wrong with them."""
    found = list(queues)
    if names := {each.queue for each in noted}:
        for index, queue in enumerate(found):
            if queue.figures.queue in names:
                for each in noted:
                    if each.queue == queue.figures.queue:
                        queue = queue.with_findings([each])
                found[index] = queue
    return found


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """The names that do not have the same in both."""
    if before == after:
        return set()
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _server_facts(status: StatusNow) -> ServerFacts:
    return ServerFacts(
        status.reached,
        status.flushes.p99,
        status.free_bytes,
        status.settings.disk_reserve,
        status.faulty,
        status.set_aside,
        *(() if status.bloat is None else (status.bloat.snapshot_s, status.bloat.holder)),
    )
