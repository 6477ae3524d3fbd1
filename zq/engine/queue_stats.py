"""Statistics of queues: from the counts that the tick keeps, an index, and what is counted here."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from zq.engine.flows import NOTHING, Flow, Flows
from zq.model.clock import Clock
from zq.model.lifecycle import NAMES, Status
from zq.model.reach import Reach
from zq.store import reads
from zq.store.store import READERS, Store
from zq.wire.stats import FlowDocument, QueueStatsDocument

WORTH_SHARING = 1000
"""Queues from which on all readers look for the oldest jobs, each for its part."""


class QueueStats:
    """A part of the engine."""

    def __init__(self, store: Store, clock: Clock, flows: Flows) -> None:
        self._store = store
        self._clock = clock
        self._flows = flows

    async def all(self, reach: Reach) -> list[QueueStatsDocument]:
        """The queues within reach that have jobs or, of late, traffic; in byte order."""
        counts = await self._counts()
        found = {queue for queue in counts.keys() | self._flows.active() if reach.covers(queue)}
        return await self._documents(sorted(found, key=str.encode), counts)

    async def one(self, queue: str, reach: Reach) -> QueueStatsDocument:
        """One queue, empty where there is none. Raises `QueueOutOfReach`."""
        reach.require([queue])
        (document,) = await self._documents([queue], await self._counts())
        return document

    async def oldest_ready(self, queues: Sequence[str]) -> dict[str, int]:
        """When the longest waiting ready job of each queue became ready."""
        share = len(queues) if len(queues) < WORTH_SHARING else -(-len(queues) // READERS)
        parts = [queues[at : at + share] for at in range(0, len(queues), share or 1)]
        found: dict[str, int] = {}
        for part in await asyncio.gather(
            *(self._store.read(reads.oldest_ready, part) for part in parts)
        ):
            found |= part
        return found

    async def _counts(self) -> dict[str, dict[Status, int]]:
        counts: defaultdict[str, dict[Status, int]] = defaultdict(dict)
        kept = await self._store.read(reads.visible_counts, self._clock.now_ms())
        for (queue, status), n in kept.items():
            if n:
                counts[queue][status] = n
        return counts

    async def _documents(
        self, queues: Iterable[str], counts: Mapping[str, Mapping[Status, int]]
    ) -> list[QueueStatsDocument]:
        queues = list(queues)
        none: dict[Status, int] = {}
        waiting = [queue for queue in queues if Status.READY in counts.get(queue, none)]
        oldest = await self.oldest_ready(waiting)
        look, now = self._flows.look(), self._clock.now_ms()
        documents: list[QueueStatsDocument] = []
        for queue in queues:
            ready_at = oldest.get(queue)
            age = None if ready_at is None else max(now - ready_at, 0)
            documents.append(
                QueueStatsDocument(
                    queue,
                    _EMPTY | {NAMES[status]: n for status, n in counts.get(queue, none).items()},
                    _flow(look.delivered.of(queue)),
                    _flow(look.completed.of(queue)),
                    _flow(look.failed.of(queue)),
                    age,
                )
            )
        return documents


_QUIET = FlowDocument(0, 0.0, 0.0)
_EMPTY = dict.fromkeys(NAMES.values(), 0)


def _flow(flow: Flow) -> FlowDocument:
    if flow is NOTHING:
        return _QUIET
    return FlowDocument(flow.total, round(flow.minute, 3), round(flow.five_minutes, 3))
