"""Folding for enqueues: a quick lane, a slow lane, and the limits of their processes."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Self

from zq.engine.engine import Engine, RunningPart
from zq.engine.inbox import Inbox, PayloadCheck, result_of
from zq.features.batches.engine_jq import JqFolds
from zq.features.batches.engine_lane import FoldLane
from zq.features.batches.engine_request import FoldRequest, Wrap
from zq.features.batches.model_jobs import batch_of
from zq.features.batches.store import HostReads
from zq.model.clock import Clock
from zq.model.commands import EnqueueResult
from zq.model.errors import InvalidRequest
from zq.model.job import NewJob
from zq.model.reach import EVERYWHERE, Reach

QUICK = 1 / 8
"""A call in the first lane gets this part of the time-out."""


class Folding(RunningPart):
    """Enqueues jobs with batches. `timeout` (seconds) limits a fold, `max_payload` its bytes.

    The payloads that folds make have to pass the `checks` of new ones.

    The first enqueue with a batch starts jq.
    """

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Folding by the limits of the settings."""
        return cls(
            engine.store.reads.of(HostReads),
            engine.inbox,
            engine.clock,
            engine.admission.checks,
            timeout=engine.settings.filter_timeout / 1000,
            max_payload=engine.settings.max_payload,
        )

    def __init__(
        self,
        reads: HostReads,
        inbox: Inbox,
        clock: Clock,
        checks: Sequence[PayloadCheck],
        *,
        timeout: float,
        max_payload: int,
    ) -> None:
        self._inbox = inbox
        slow = FoldLane(
            *(reads, inbox, clock, JqFolds(seconds=timeout)),
            max_payload=max_payload,
            checks=checks,
            patience=timeout,
        )
        quick = FoldLane(
            *(reads, inbox, clock, JqFolds(seconds=timeout * QUICK)),
            max_payload=max_payload,
            checks=checks,
            patience=timeout,
            slower=slow,
        )
        self._lanes = (quick, slow)

    async def enqueue(
        self, keys: Sequence[int], jobs: Sequence[NewJob], now: int, size: int, reach: Reach
    ) -> EnqueueResult:
        """Store jobs, some of which come with batches, or fold them: all or none, in order.

        Raises the errors of an `Enqueue`, `Unprocessable` if a rule or a fold fails, `InboxFull` or
        `ServiceUnavailable`. If the caller is cancelled, only the answer is lost: the jobs are
        stored.
        """
        result: EnqueueResult = await self._ask(FoldRequest(keys, jobs, now, size, reach))
        return result

    async def fire(self, key: int, job: NewJob, now: int, wrap: Wrap) -> int:
        """Enqueue or fold a job of cron by the `Fire` that `wrap` makes. Return its result."""
        request = FoldRequest((key,), (job,), now, job.payload_size, EVERYWHERE, wrap)
        moved: int = await self._ask(request)
        return moved

    async def check(self, jobs: Iterable[NewJob]) -> None:
        """Try the rules of jobs that will be enqueued later. Raises `InvalidRequest`."""
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

    async def stop(self) -> None:
        """Tell those who wait that the server is stopping, and end the processes."""
        await asyncio.gather(*(lane.close() for lane in self._lanes))


RUNNING = (Folding,)
