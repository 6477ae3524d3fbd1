"""How many jobs each queue has in each status: one read for all who ask at a time."""

import asyncio
from collections import Counter

from zq.model.clock import Clock
from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.store import reads
from zq.store.store import Store

Counts = Counter[tuple[str, Status]]


class Tallies:
    """Reads the kept counts. Whoever asks while a read runs shares the next one with all others.

    Never the running one: it may have begun before what the asker has just changed.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._running: asyncio.Task[Counts] | None = None
        self._next: asyncio.Task[Counts] | None = None

    async def read(self) -> Counts:
        """The counts as they are now or later; whoever asks may not change them."""
        if self._next is None:
            self._next = asyncio.create_task(self._read(self._running))
            # Those who asked may all be gone by the time it fails.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._next)

    async def count(self, filter: Filter) -> int:
        """How many jobs match a filter of which `reads.is_kept` is true."""
        return reads.kept_count(await self.read(), filter)

    async def _read(self, before: asyncio.Task[Counts] | None) -> Counts:
        if before is not None:
            await asyncio.wait([before])
        self._running, self._next = self._next, None
        return await self._store.read(reads.visible_counts, self._clock.now_ms())
