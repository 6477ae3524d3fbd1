"""The verbs about fair keys: what they wait for, and what is set for them."""

import asyncio
from typing import Self

from zq.engine.inbox import Inbox
from zq.features.fair.model import FairKeyNotFound, FairKeyState, FairLimit, FairOrder
from zq.features.fair.model_jobs import DropFairLimit, PutFairLimit
from zq.features.fair.store import FairReads, FairSums
from zq.model.reach import EVERYWHERE, Reach, require_room
from zq.service.services import Services

Shown = tuple[FairKeyState, FairLimit | None]


class FairKeys:
    """The fair keys of queues. Whoever may read or manage a queue may do so with its keys."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store.reads.of(FairReads), services.engine.inbox)

    def __init__(self, reads: FairReads, inbox: Inbox) -> None:
        self._reads = reads
        self._inbox = inbox
        self._bounded = asyncio.Lock()
        """Callers with a bounded reach set keys one after the other: they are counted."""

    async def page(
        self, queue: str, reach: Reach, order: FairOrder, skip: int, limit: int
    ) -> tuple[list[Shown], FairSums]:
        """Some keys of a queue with unfinished jobs, and all together. Raises `QueueOutOfReach`."""
        reach.require([queue])
        found = await self._reads.keys(queue, order, skip, limit)
        limits = await self._reads.limits(queue, [each.key for each in found])
        return [(each, limits.get(each.key)) for each in found], await self._reads.sums(queue)

    async def get(
        self, queue: str, key: str, reach: Reach
    ) -> tuple[FairKeyState | None, FairLimit | None]:
        """A key and what is set for it. Raises `FairKeyNotFound` or `QueueOutOfReach`."""
        reach.require([queue])
        state, limit = await self._reads.key(queue, key)
        if state is None and limit is None:
            raise FairKeyNotFound(queue, key)
        return state, limit

    async def put(self, queue: str, key: str, limit: FairLimit, reach: Reach) -> FairLimit:
        """Set the weight and the limits of a key. Raises `QueueOutOfReach` or `QuotaReached`."""
        reach.require([queue])
        if reach is EVERYWHERE:
            return await self._inbox.ask(PutFairLimit(queue, key, limit))
        async with self._bounded:
            if not await self._reads.limits(queue, [key]):
                require_room("fair keys with settings", await self._reads.tally(), reach, 1)
            return await self._inbox.ask(PutFairLimit(queue, key, limit))

    async def drop(self, queue: str, key: str, reach: Reach) -> None:
        """Leave a key to its jobs and its queue. Raises `FairKeyNotFound` or `QueueOutOfReach`."""
        reach.require([queue])
        if not await self._inbox.ask(DropFairLimit(queue, key)):
            raise FairKeyNotFound(queue, key)
