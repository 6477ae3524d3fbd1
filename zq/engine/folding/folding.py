"""Folding for whoever enqueues: a quick lane, a slow one, and what their processes may take."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from zq.engine.folding.lane import FoldLane
from zq.engine.folding.request import FoldRequest, Wrap
from zq.engine.inbox import Inbox, result_of
from zq.engine.jq.fold import JqFolds
from zq.model.clock import Clock
from zq.model.commands import EnqueueResult
from zq.model.errors import InvalidRequest
from zq.model.job import NewJob, batch_of
from zq.model.reach import EVERYWHERE, Reach
from zq.store.api import Reads

QUICK = 1 / 8
"""The part of the time-out that a call gets in the first lane."""


class Folding:
    """Enqueues with jobs in batches. `timeout` in seconds bounds a fold, `max_payload` its bytes.

    jq starts with the first of them.
    """

    def __init__(
        self, reads: Reads, inbox: Inbox, clock: Clock, *, timeout: float, max_payload: int
    ) -> None:
        self._inbox = inbox
        slow = FoldLane(
            *(reads, inbox, clock, JqFolds(seconds=timeout)),
            max_payload=max_payload,
            patience=timeout,
        )
        quick = FoldLane(
            *(reads, inbox, clock, JqFolds(seconds=timeout * QUICK)),
            max_payload=max_payload,
            patience=timeout,
            slower=slow,
        )
        self._lanes = (quick, slow)

    async def enqueue(
        self, keys: Sequence[int], jobs: Sequence[NewJob], now: int, size: int, reach: Reach
    ) -> EnqueueResult:
        """Store jobs of which some come with batches, or fold them, all or none, in order.

        Raises what an `Enqueue` raises, `Unprocessable` where a rule or a fold is at fault,
        `InboxFull` or `ServiceUnavailable`. Whoever is cancelled here loses the answer, and the
        jobs are stored all the same.
        """
        result: EnqueueResult = await self._ask(FoldRequest(keys, jobs, now, size, reach))
        return result

    async def fire(self, key: int, job: NewJob, now: int, wrap: Wrap) -> int:
        """Have a job of cron enqueued or folded by the `Fire` that `wrap` makes; what that says."""
        request = FoldRequest((key,), (job,), now, job.payload_size, EVERYWHERE, wrap)
        moved: int = await self._ask(request)
        return moved

    async def check(self, jobs: Iterable[NewJob]) -> None:
        """Try the rules of jobs that are to be enqueued later. Raises `InvalidRequest`."""
        for job in jobs:
            rule = batch_of(job)
            if rule is not None and (fault := await self._lanes[0].fault_of(rule, job.payload)):
                raise InvalidRequest(fault)

    async def _ask(self, request: FoldRequest) -> Any:
        self._inbox.check_open()
        self._inbox.check_room()
        self._inbox.hold(len(request.jobs), request.size)
        self._lanes[0].put(request)
        return result_of(await request.reply)

    async def close(self) -> None:
        """Tell those who wait that the server is stopping, and end the processes."""
        await asyncio.gather(*(lane.close() for lane in self._lanes))
