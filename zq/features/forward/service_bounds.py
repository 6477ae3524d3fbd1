"""The bounds of lanes: how much may wait on one, in bytes and time, and what happens over them.

What waits is counted again and again. Between two counts, what has come is added, and only what was
dropped is taken off, so that a bound on bytes holds at any time for new jobs. A lane that drops its
oldest jobs makes room before it takes others. What is under way is never dropped, so where that
alone is over the bound, the jobs of one request may wait beside it.
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
from zq.model.ids import MAX_KEY, Mint, key_at
from zq.model.queue_patterns import QueuePatterns
from zq.service.services import RunningService, Services
from zq.store.api import Store
from zq.store.errors import StoreError

log = logging.getLogger("zq.forward")

LOOK_S = 1.0
"""The time between two counts. It is longer where a count takes more than a twentieth of it."""

SLACK = 64
"""Where jobs are dropped, room is made for one part more in so many of the bound."""

MOST_WAITS = 8
"""How often a request waits for what others have sent, before it is taken without room."""

MOST_DROPPED = 500
"""The most jobs that a transaction drops."""


class _Bound:
    """A lane with a bound, and what waits on it as far as is known."""

    def __init__(self, lane: ForwardLane) -> None:
        self.lane = lane
        self.patterns = lane.rule.patterns
        self.bytes = 0
        self.coming = 0
        """The bytes of the request for which room is being made."""
        self.age_ms = 0
        self.arrived = 0
        """The jobs that had arrived at the last count. It is too high after more have."""
        self.has_new = False
        """True if jobs have been taken since the last count began."""
        self.changing = asyncio.Lock()

    @property
    def over(self) -> int:
        """So many bytes more wait than may; below 0 if there is room."""
        most = self.lane.rule.max_bytes
        return -MAX_KEY if most is None else self.bytes + self.coming - most

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
        self.add(size)

    def add(self, size: int) -> None:
        """Count new jobs that are taken."""
        self.bytes += size
        self.has_new = True


class LaneBounds(RunningService):
    """Holds lanes to their bounds."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The bounds of a server's lanes. New jobs come to them."""
        engine = services.engine
        bounds = cls(services.store, services.clock, engine.inbox, engine.mint, services[Lanes])
        services.jobs.checks.append(bounds)
        return bounds

    def __init__(self, store: Store, clock: Clock, inbox: Inbox, mint: Mint, lanes: Lanes) -> None:
        self._reads = store.reads
        self._stored = store.reads.of(LaneReads)
        self._clock = clock
        self._inbox = inbox
        self._mint = mint
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
                if bound.patterns.covers(queue):
                    sizes[name] = sizes.get(name, 0) + len(payload)
        for name, size in sizes.items():
            bound = self._bounds[name]
            if bound.refuses:
                bound.admit(size)
            elif bound.over + size <= 0:
                bound.add(size)
            else:
                await self._make_room(bound, size)

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
        """Learn which lanes have bounds. What is known of a lane that stays, still holds."""
        lanes = [
            lane
            for lane in await self._lanes.all()
            if lane.rule.max_bytes is not None or lane.rule.max_age_ms is not None
        ]
        self.in_use = self._bounds = {lane.name: self._bound_of(lane) for lane in lanes}

    def _bound_of(self, lane: ForwardLane) -> _Bound:
        known = self._bounds.get(lane.name)
        if known is None or known.patterns != lane.rule.patterns:
            return _Bound(lane)
        known.lane = lane
        return known

    async def _look(self) -> None:
        for bound in list(self._bounds.values()):
            async with bound.changing:
                await self._count(bound)
                while not bound.refuses and await self._drop(bound):
                    await self._count(bound)

    async def _make_room(self, bound: _Bound, size: int) -> None:
        """Drop the oldest jobs of a lane for new ones, as far as they are not under way."""
        async with bound.changing:
            bound.coming = size
            try:
                if bound.arrived != self._lanes.progress(bound.lane.name).arrived:
                    await self._count(bound)
                for _ in range(MOST_WAITS):
                    while await self._drop(bound):
                        pass
                    if bound.over <= 0:
                        break
                    # What others have sent is on its way into the store: it can be dropped there.
                    await self._settle()
            finally:
                bound.coming = 0
            bound.add(size)

    async def _count(self, bound: _Bound) -> None:
        # A request is added to what is known, and takes its keys, in one turn of the event loop.
        before, last = bound.bytes, self._mint.last
        arrived = self._lanes.progress(bound.lane.name).arrived
        if bound.has_new:
            bound.has_new = False
            await self._settle()
        queues = await self._queues(bound.patterns)
        counted = await self._stored.waiting_bytes(queues, range(last + 1))
        # What has come meanwhile has later keys.
        bound.bytes, bound.arrived = counted + bound.bytes - before, arrived
        oldest = await self._reads.oldest_ready(queues)
        now = self._clock.now_ms()
        bound.age_ms = max((now - at for at in oldest.values()), default=0)

    async def _settle(self) -> None:
        """Wait until what was taken so far is stored: a tick may leave new jobs to the next one."""
        for _ in range(2):
            await self._inbox.ask(DropOldest(()))

    async def _drop(self, bound: _Bound) -> bool:
        """Drop some of the oldest jobs, if there are too many. Return whether some were.

        It makes a little more room than is needed, for the next ones.
        """
        rule, upto, room = bound.lane.rule, MAX_KEY, 0
        if rule.max_age_ms is not None and bound.age_ms > rule.max_age_ms:
            upto, room = key_at(self._clock.now_ms() - rule.max_age_ms), MAX_KEY
        elif rule.max_bytes is not None and bound.over > 0:
            room = bound.over + rule.max_bytes // SLACK
        if not room:
            return False
        queues = await self._queues(bound.patterns)
        found: list[tuple[int, int]] = []
        for key, size in await self._stored.oldest_jobs(queues, upto, MOST_DROPPED):
            if room <= 0:
                break
            found.append((key, size))
            room -= size
        if not found:
            return False
        dropped = await self._inbox.ask(DropOldest([key for key, _ in found]))
        if dropped == len(found):
            bound.bytes -= sum(size for _, size in found)
        else:
            await self._count(bound)
        if dropped:
            log.warning(
                f"lane {bound.lane.name} is full: {dropped:,} of the oldest jobs are dropped"
            )
        self._lanes.progress(bound.lane.name).dropped += dropped
        return dropped > 0

    async def _queues(self, patterns: QueuePatterns) -> Sequence[str]:
        counts = await self._reads.counts(self._clock.now_ms())
        return sorted({queue for (queue, _), n in counts.items() if n and patterns.covers(queue)})
