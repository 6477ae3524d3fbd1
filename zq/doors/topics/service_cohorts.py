"""Claims that come within a short time of each other, so that each gets its share of few jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from zq.doors.topics.model_jobs import dealt
from zq.model.clock import Clock
from zq.model.errors import ZqError
from zq.store.errors import StoreError


class Cohorts:
    """The claims that wait for others, by topic. `count_ready` tells how many jobs there are."""

    def __init__(self, clock: Clock, count_ready: Callable[[str], Awaitable[int]]) -> None:
        self._clock = clock
        self._count_ready = count_ready
        self._waiting: dict[str, list[tuple[int, asyncio.Future[int]]]] = {}
        self._dealing: set[asyncio.Task[None]] = set()

    def waiting(self, topic: str) -> int:
        """How many claims of a topic wait for others."""
        return len(self._waiting.get(topic, ()))

    async def share(self, topic: str, most: int, window_ms: int) -> int:
        """How many jobs a claim of up to `most` may take, once its cohort is complete."""
        claim: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if topic not in self._waiting:
            self._waiting[topic] = []
            self._clock.call_later(window_ms / 1000, partial(self._begin, topic))
        self._waiting[topic].append((most, claim))
        return await claim

    def _begin(self, topic: str) -> None:
        task = asyncio.create_task(self._deal(topic))
        self._dealing.add(task)
        task.add_done_callback(self._dealing.discard)

    async def _deal(self, topic: str) -> None:
        # Those whose clients are gone meanwhile get no share.
        cohort = [each for each in self._waiting.pop(topic) if not each[1].done()]
        wanted = [most for most, _ in cohort]
        try:
            shares = dealt(await self._count_ready(topic), wanted)
        except (ZqError, StoreError):
            shares = wanted
        for share, (_, claim) in zip(shares, cohort, strict=True):
            if not claim.done():
                claim.set_result(share)
