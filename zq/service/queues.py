"""The verbs about queues: their names, how many jobs they have, their statistics and settings."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from zq.engine.inbox import Inbox
from zq.engine.subscribers.figures import NO_FLOW, Flows, QueueFlow
from zq.model.clock import Clock
from zq.model.commands import SetQueue
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach, require_room
from zq.model.settings import NO_SETTINGS, QueueSettings, SettingsPatch
from zq.store.api import Store

K = TypeVar("K")
T = TypeVar("T")


class SharedReads(Generic[K, T]):
    """Reads by a key. Callers with the same key at the same time share one.

    A caller during a read shares the next one with all other callers. The running read may have
    begun before the caller's last change.
    """

    def __init__(self, read: Callable[[K], Awaitable[T]]) -> None:
        self._read = read
        self._running: dict[K, asyncio.Task[T]] = {}
        self._next: dict[K, asyncio.Task[T]] = {}

    async def get(self, key: K) -> T:
        """The result of a read that ends now or later. The caller must not change it."""
        task = self._next.get(key)
        if task is None:
            task = asyncio.create_task(self._run(key, self._running.get(key)))
            # All callers may be gone when it fails.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            self._next[key] = task
        return await asyncio.shield(task)

    async def _run(self, key: K, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait([before])
        task = self._running[key] = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._running[key] is task:
                del self._running[key]


Counts = Counter[tuple[str, Status]]

AT_A_TIME = 200
"""How many queues are counted up before other tasks get a turn."""

GROUPED_AT_A_TIME = 5_000
"""How many counts are put with their queues before that."""


class QueueStatistics(NamedTuple):
    """One queue: its jobs by status, as far as it has any, and its traffic."""

    queue: str
    counts: Mapping[Status, int]
    oldest_ready_age_ms: int | None
    """None if no job is ready."""
    deliveries: QueueFlow = NO_FLOW
    completions: QueueFlow = NO_FLOW
    failures: QueueFlow = NO_FLOW
    oldest_ready_at: int | None = None
    """When that job became ready, in milliseconds."""


class QueueCounts:
    """How many jobs each queue has in each status. Callers at the same time share one read."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._reads = store.reads
        self._clock = clock
        self._shared = SharedReads(self._read)

    async def read(self) -> Counts:
        """The counts of now or later. The caller must not change them."""
        return await self._shared.get(None)

    async def _read(self, _key: None) -> Counts:
        return await self._reads.counts(self._clock.now_ms())


class Queues:
    """The queues. The reach of a caller limits those that it sees and sets."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        inbox: Inbox,
        counts: QueueCounts,
        flows: Flows,
        inherited: QueueSettings,
    ) -> None:
        self._reads = store.reads
        self._clock = clock
        self._inbox = inbox
        self._flows = flows
        self._bounded = asyncio.Lock()
        """Callers with a bounded reach set queues one after the other: they are counted."""
        self.inherited = inherited
        """The settings of a queue that sets none."""
        self.counts = counts.read
        """Returns how many jobs each queue has in each status."""
        self.active = flows.active
        """Returns the queues with traffic in the last five minutes."""
        self.oldest_ready = store.reads.oldest_ready
        """Returns when the longest waiting ready job of each of some queues became ready."""

    async def names(self, reach: Reach) -> list[str]:
        """The queues that have jobs in any status, in byte order."""
        counts = await self.counts()
        found = {queue for (queue, _), n in counts.items() if n and reach.covers(queue)}
        return sorted(found, key=str.encode)

    # Statistics

    async def statistics(
        self,
        reach: Reach,
        among: Sequence[str] | None = None,
        settings: Mapping[str, QueueSettings] | None = None,
    ) -> list[QueueStatistics]:
        """The queues within reach that have jobs or recent traffic or are paused, in byte order.

        Only those `among` some queues are read, if these are given. A caller that has read all
        `settings` passes them on.
        """
        counts = await self.by_queue(among)
        if settings is None:
            settings = await self._reads.all_settings()
        # Nobody should forget a paused queue, also while it is empty.
        paused = {queue for queue, each in settings.items() if each.paused}
        others = (self._flows.active() | paused) - counts.keys()
        if among is not None:
            others &= set(among)
        # The store has them in order: to sort a list that is takes a tenth of the time.
        found = sorted([*counts, *others])
        if reach is not EVERYWHERE:
            found = [queue for queue in found if reach.covers(queue)]
        return await self._statistics(found, counts)

    async def statistics_of(self, queue: str, reach: Reach) -> QueueStatistics:
        """One queue, empty if it does not exist. Raises `QueueOutOfReach`."""
        reach.require([queue])
        (found,) = await self._statistics([queue], await self.by_queue([queue]))
        return found

    async def by_queue(self, among: Sequence[str] | None = None) -> dict[str, dict[Status, int]]:
        """How many jobs each queue has in each status, for queues with jobs."""
        if among is None:
            found = await self.counts()
        else:
            found = await self._reads.counts(self._clock.now_ms(), among)
        counts: dict[str, dict[Status, int]] = {}
        for index, ((queue, status), n) in enumerate(found.items(), 1):
            if n:
                counts.setdefault(queue, {})[status] = n
            if not index % GROUPED_AT_A_TIME:
                await asyncio.sleep(0)
        return counts

    async def _statistics(
        self, queues: Sequence[str], counts: Mapping[str, dict[Status, int]]
    ) -> list[QueueStatistics]:
        waiting = [queue for queue in queues if Status.READY in counts.get(queue, _NONE)]
        oldest = await self.oldest_ready(waiting)
        rates, now = self._flows.rates(), self._clock.now_ms()
        found = []
        for queue in queues:
            ready_at = oldest.get(queue)
            age = None if ready_at is None else max(now - ready_at, 0)
            flows = (
                (rates.delivered.of(queue), rates.completed.of(queue), rates.failed.of(queue))
                if queue in rates.known
                else (NO_FLOW,) * 3
            )
            found.append(QueueStatistics(queue, counts.get(queue, _NONE), age, *flows, ready_at))
            if not len(found) % AT_A_TIME:
                await asyncio.sleep(0)
        return found

    # Settings

    async def settings(self, queue: str, reach: Reach) -> QueueSettings:
        """The settings of a queue. Raises `QueueOutOfReach`."""
        reach.require([queue])
        return await self._reads.settings(queue)

    async def all_settings(self, reach: Reach) -> dict[str, QueueSettings]:
        """All settings of queues within reach, in the order of their names."""
        found = await self._reads.all_settings()
        return {queue: found[queue] for queue in sorted(found) if reach.covers(queue)}

    async def set(
        self, queue: str, settings: QueueSettings | SettingsPatch, reach: Reach
    ) -> QueueSettings:
        """Replace a queue's settings. A patch changes only the settings that it names.

        Return the new settings. Raises `DeadLetterCycle`, `FanOutChain`, `QueueOutOfReach` or
        `QuotaReached`.
        """
        reach.require([queue, settings])
        if reach is EVERYWHERE or settings == NO_SETTINGS:
            return await self._inbox.ask(SetQueue(queue, settings))
        async with self._bounded:
            found = await self._reads.all_settings()
            if queue not in found:
                require_room("queues with settings", Counter(found.keys()), reach, 1)
            return await self._inbox.ask(SetQueue(queue, settings))

    async def clear_settings(self, queue: str, reach: Reach) -> None:
        """Delete a queue's settings. Raises `QueueOutOfReach`."""
        await self.set(queue, NO_SETTINGS, reach)


_NONE: dict[Status, int] = {}
