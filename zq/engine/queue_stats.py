"""Statistics of queues: from the counts that the tick keeps, an index, and what is counted here."""

import asyncio
from collections.abc import Mapping, Sequence

from zq.engine.flows import Flow, Flows
from zq.engine.tallies import Tallies
from zq.model.clock import Clock
from zq.model.lifecycle import NAMES, Status
from zq.model.reach import EVERYWHERE, Reach
from zq.store import reads
from zq.store.readers import SCANNERS
from zq.store.store import Store
from zq.wire.stats import FlowDocument, QueueStatsDocument

WORTH_SHARING = 1000
"""Queues from which on it is a scan to look for the oldest jobs, and scanners do a part each."""


class QueueStats:
    """A part of the engine."""

    def __init__(self, store: Store, clock: Clock, tallies: Tallies, flows: Flows) -> None:
        self._store = store
        self._clock = clock
        self._tallies = tallies
        self._flows = flows

    async def all(self, reach: Reach) -> list[QueueStatsDocument]:
        """The queues within reach that have jobs or, of late, traffic; in byte order."""
        counts = await self._counts()
        found = counts.keys() | self._flows.active()
        if reach is not EVERYWHERE:
            found = {queue for queue in found if reach.covers(queue)}
        return await self._documents(sorted(found), counts)

    async def one(self, queue: str, reach: Reach) -> QueueStatsDocument:
        """One queue, empty where there is none. Raises `QueueOutOfReach`."""
        reach.require([queue])
        (document,) = await self._documents([queue], await self._counts())
        return document

    async def oldest_ready(self, queues: Sequence[str]) -> dict[str, int]:
        """When the longest waiting ready job of each queue became ready."""
        if len(queues) < WORTH_SHARING:
            return await self._store.read(reads.oldest_ready, queues)
        share = -(-len(queues) // SCANNERS)
        parts = [queues[at : at + share] for at in range(0, len(queues), share)]
        scans = self._store.readers.scans
        found: dict[str, int] = {}
        for part in await asyncio.gather(*(scans.read(reads.oldest_ready, p) for p in parts)):
            found |= part
        return found

    async def _counts(self) -> dict[str, dict[str, int]]:
        """How many jobs each queue has in each status by its name, where it has some."""
        counts: dict[str, dict[str, int]] = {}
        kept = await self._tallies.read()
        for (queue, status), n in kept.items():
            if n:
                counts.setdefault(queue, {})[NAMES[status]] = n
        return counts

    async def _documents(
        self, queues: Sequence[str], counts: Mapping[str, dict[str, int]]
    ) -> list[QueueStatsDocument]:
        waiting = [queue for queue in queues if _READY in counts.get(queue, _EMPTY)]
        oldest = await self.oldest_ready(waiting)
        look, now = self._flows.look(), self._clock.now_ms()
        documents = [
            QueueStatsDocument(queue, _NONE | counts.get(queue, _EMPTY)) for queue in queues
        ]
        for document in documents:
            ready_at = oldest.get(document.queue)
            if ready_at is not None:
                document.oldest_ready_age_ms = max(now - ready_at, 0)
            if document.queue in look.known:
                document.deliveries = _flow(look.delivered.of(document.queue))
                document.completions = _flow(look.completed.of(document.queue))
                document.failures = _flow(look.failed.of(document.queue))
        return documents


_READY = NAMES[Status.READY]
_NONE = dict.fromkeys(NAMES.values(), 0)
_EMPTY: dict[str, int] = {}


def _flow(flow: Flow) -> FlowDocument:
    return FlowDocument(flow.total, round(flow.minute, 3), round(flow.five_minutes, 3))
