"""The bounds of lanes: how much may wait on one, in bytes and time, and what happens over them.

What waits is counted again and again. Between two counts, what has come is added and nothing is
taken off, so that a bound on bytes holds at any time for new jobs.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Self

from zq.engine.inbox import Inbox
from zq.features.forward.commands import DropOldest
from zq.features.forward.errors import LaneFull
from zq.features.forward.model import ForwardLane
from zq.features.forward.service import Lanes
from zq.features.forward.store import LaneReads
from zq.model.clock import Clock
from zq.model.errors import ZqError
from zq.model.ids import MAX_KEY, key_at
from zq.model.queue_patterns import QueuePatterns
from zq.service.services import RunningService, Services
from zq.store.api import Store
from zq.store.errors import StoreError

log = logging.getLogger("zq.forward")

LOOK_S = 1.0
"""The time between two counts. It is longer where a count takes more than a twentieth of it."""

MOST_DROPPED = 500
"""The most jobs that a transaction drops."""


class _Bound:
    """A lane with a bound, and what waits on it as far as is known."""

    def __init__(self, lane: ForwardLane) -> None:
        self.lane = lane
        self.patterns = lane.rule.patterns
        self.bytes = 0
        self.age_ms = 0

    @property
    def refuses(self) -> bool:
        return self.lane.rule.when_full == "refuse"

    def admit(self, size: int) -> None:
        """Count new jobs. Raises `LaneFull`."""
        rule = self.lane.rule
        if rule.max_bytes is not None and self.bytes + size > rule.max_bytes:
            raise LaneFull(self.lane.name, f"{self.bytes:,} of {rule.max_bytes:,} bytes wait")
        if rule.max_age_ms is not None and self.age_ms > rule.max_age_ms:
            raise LaneFull(self.lane.name, f"a job waits for {self.age_ms / 1000:,.0f} s")
        self.bytes += size


class LaneBounds(RunningService):
    """Holds lanes to their bounds."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The bounds of a server's lanes. New jobs come to them."""
        bounds = cls(services.store, services.clock, services.engine.inbox, services[Lanes])
        services.jobs.checks.append(bounds)
        return bounds

    def __init__(self, store: Store, clock: Clock, inbox: Inbox, lanes: Lanes) -> None:
        self._reads = store.reads
        self._stored = store.reads.of(LaneReads)
        self._clock = clock
        self._inbox = inbox
        self._lanes = lanes
        self._bounds: dict[str, _Bound] = {}
        self.in_use: object = False
        """Not empty while some lanes have bounds. Every request for new jobs looks at it."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to count."""
        self._lanes.when_changed.append(self._changed.set)
        await self._follow()
        await self._look()
        self._task = asyncio.create_task(self._run(), name="zq-lane-bounds")

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def require(self, payloads: Iterable[tuple[str, str]]) -> None:
        """Raise `LaneFull` unless there is room for these payloads, given with their queues."""
        sizes: dict[str, int] = {}
        for queue, payload in payloads:
            for name, bound in self._bounds.items():
                if bound.refuses and bound.patterns.covers(queue):
                    sizes[name] = sizes.get(name, 0) + len(payload)
        for name, size in sizes.items():
            self._bounds[name].admit(size)

    async def _run(self) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                if self._changed.is_set():
                    self._changed.clear()
                    await self._follow()
                await self._look()
            except (ZqError, StoreError) as error:
                log.warning(f"the bounds of lanes are not looked at: {error}")
            took = self._clock.monotonic() - began
            if self._bounds:
                await asyncio.sleep(max(LOOK_S, 20 * took))
            else:
                await self._changed.wait()

    async def _follow(self) -> None:
        """Learn which lanes have bounds."""
        lanes = [
            lane
            for lane in await self._lanes.all()
            if lane.rule.max_bytes is not None or lane.rule.max_age_ms is not None
        ]
        self.in_use = self._bounds = {lane.name: _Bound(lane) for lane in lanes}

    async def _look(self) -> None:
        for bound in list(self._bounds.values()):
            await self._count(bound)
            while not bound.refuses and await self._drop(bound):
                await self._count(bound)

    async def _count(self, bound: _Bound) -> None:
        queues = await self._queues(bound.patterns)
        before = bound.bytes
        counted = await self._stored.waiting_bytes(queues)
        # What has come meanwhile may be missing in the count.
        bound.bytes = counted + bound.bytes - before
        oldest = await self._reads.oldest_ready(queues)
        now = self._clock.now_ms()
        bound.age_ms = max((now - at for at in oldest.values()), default=0)

    async def _drop(self, bound: _Bound) -> bool:
        """Drop some of the oldest jobs, if there are too many. Return whether some were."""
        rule = bound.lane.rule
        over = 0 if rule.max_bytes is None else bound.bytes - rule.max_bytes
        too_old = rule.max_age_ms is not None and bound.age_ms > rule.max_age_ms
        if over <= 0 and not too_old:
            return False
        queues = await self._queues(bound.patterns)
        upto = MAX_KEY
        if over <= 0:
            assert rule.max_age_ms is not None
            upto = key_at(self._clock.now_ms() - rule.max_age_ms)
        keys: list[int] = []
        for key, size in await self._stored.oldest_jobs(queues, upto, MOST_DROPPED):
            if over <= 0 and not too_old:
                break
            keys.append(key)
            over -= size
        dropped = await self._inbox.ask(DropOldest(keys)) if keys else 0
        if dropped:
            log.warning(
                f"lane {bound.lane.name} is full: {dropped:,} of the oldest jobs are dropped"
            )
        self._lanes.progress(bound.lane.name).dropped += dropped
        return dropped > 0

    async def _queues(self, patterns: QueuePatterns) -> Sequence[str]:
        counts = await self._reads.counts(self._clock.now_ms())
        return sorted({queue for (queue, _), n in counts.items() if n and patterns.covers(queue)})
