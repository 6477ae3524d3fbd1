"""The bounds of lanes on the age of jobs, and the look after all bounds.

A transaction that stores new jobs holds lanes to their bounds on bytes: see
`zq.features.forward.tick_bounds`. Here lanes that drop their oldest jobs are looked at again and
again: time passes, jobs come back without being new, and a rule may have another bound than before.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Self

from zq.engine.inbox import Inbox
from zq.features.forward.commands import TrimLane
from zq.features.forward.engine import DropBell
from zq.features.forward.errors import LaneFull
from zq.features.forward.model import LaneRule
from zq.features.forward.service import Lanes
from zq.features.forward.store import LaneReads
from zq.model.clock import Clock
from zq.model.errors import ZqError
from zq.model.ids import key_at
from zq.model.queue_patterns import QueuePatterns
from zq.service.services import RunningService, Services
from zq.store.api import Store
from zq.store.errors import StoreError

log = logging.getLogger("zq.forward")

LOOK_S = 1.0
"""The time between two looks. It is longer where a look takes more than a twentieth of it."""


class LaneBounds(RunningService):
    """Holds lanes to their bounds."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The bounds of a server's lanes. New jobs come to them."""
        engine = services.engine
        bell = engine[DropBell]
        bounds = cls(services.store, services.clock, engine.inbox, services[Lanes], bell)
        services.jobs.checks.append(bounds)
        engine.when_heard.append(bounds._changed.set)
        return bounds

    def __init__(
        self, store: Store, clock: Clock, inbox: Inbox, lanes: Lanes, bell: DropBell
    ) -> None:
        self._reads = store.reads
        self._stored = store.reads.of(LaneReads)
        self._clock = clock
        self._inbox = inbox
        self._lanes = lanes
        self._bell = bell
        self._rules: dict[str, LaneRule] = {}
        """The rules of the lanes that have bounds."""
        self.in_use: dict[str, tuple[QueuePatterns, int]] = {}
        """The lanes whose oldest job waits for too long, with their queues and its age, in
        milliseconds. Every request for new jobs looks at it."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
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
        """Raise `LaneFull` if a job waits for too long where payloads come, given with queues."""
        queues = {queue for queue, _ in payloads}
        for name, (patterns, age_ms) in self.in_use.items():
            if any(map(patterns.covers, queues)):
                raise LaneFull(name, f"a job waits for {age_ms / 1000:,.0f} s")

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
            if self._rules:
                await asyncio.sleep(max(LOOK_S, 20 * took))
            else:
                await self._changed.wait()

    async def _follow(self) -> None:
        """Learn which lanes have bounds."""
        lanes = await self._lanes.all()
        self._rules = {lane.name: lane.rule for lane in lanes if lane.rule.is_bounded}
        self._bell.listens = [self._note] if self._rules else []

    async def _look(self) -> None:
        late: dict[str, tuple[QueuePatterns, int]] = {}
        counts = await self._reads.counts(self._clock.now_ms()) if self._rules else {}
        waiting = {queue for (queue, _), n in counts.items() if n}
        for name, rule in self._rules.items():
            queues = sorted(filter(rule.patterns.covers, waiting))
            age_ms = await self._excess_age(rule, queues)
            if rule.when_full == "drop_oldest":
                await self._trim(name, rule, queues, is_late=age_ms is not None)
            elif age_ms is not None:
                late[name] = (rule.patterns, age_ms)
        self.in_use = late

    async def _excess_age(self, rule: LaneRule, queues: Sequence[str]) -> int | None:
        """The age of the oldest ready job in milliseconds, if it is more than may be."""
        if rule.max_age_ms is None:
            return None
        oldest = await self._reads.oldest_ready(queues)
        age_ms = max((self._clock.now_ms() - at for at in oldest.values()), default=0)
        return age_ms if age_ms > rule.max_age_ms else None

    async def _trim(
        self, name: str, rule: LaneRule, queues: Sequence[str], *, is_late: bool
    ) -> None:
        """Drop what is too much or too old on a lane, if there is something."""
        upto = 0
        if is_late and rule.max_age_ms is not None:
            upto = key_at(self._clock.now_ms() - rule.max_age_ms)
        most = rule.max_bytes
        if upto or (most is not None and await self._stored.waiting_bytes(queues) > most):
            while await self._inbox.ask(TrimLane(name, upto)):
                pass

    def _note(self, lane: str, dropped: int) -> None:
        log.warning(f"lane {lane} is full: {dropped:,} of the oldest jobs are dropped")
        self._lanes.progress(lane).dropped += dropped
