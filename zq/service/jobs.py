"""The verbs about new jobs and single jobs.

A verb gets the reach of its caller. Jobs beyond it do not exist.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Protocol

import msgspec

from zq.engine.inbox import Admission, Inbox
from zq.engine.subscribers.waiters import Waiter, Waiters
from zq.model.clock import Clock
from zq.model.commands import (
    ALL_STORED,
    CancelJob,
    DeleteJob,
    Enqueue,
    EnqueueResult,
    PatchJob,
    RetainJob,
    Revive,
)
from zq.model.errors import ErrorRecordNotFound, InvalidRequest, JobNotFound
from zq.model.ids import IdCodec, Mint
from zq.model.job import ErrorRecord, JobRecord, NewJob, Retention
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings
from zq.model.settling import Ending
from zq.model.unique import KeySpace, lock_of
from zq.store.api import Store
from zq.store.snapshot import PAGE_BYTES

_EXTRAS = attrgetter("extras")

FIRST, LAST = 0, 2**63 - 1
"""Places before the first attempt of a job and after its last one."""


EnqueueMaker = Callable[..., Enqueue]
"""Makes the command of new jobs from the fields of an `Enqueue`."""


class Accepted(msgspec.Struct, frozen=True):
    """The result of an enqueue: keys and their time, and which of the jobs were not stored."""

    keys: Sequence[int]
    now: int
    reply: EnqueueResult
    joined: int
    """How many were not stored, since they exist already or were folded into others."""


class EnqueuePlanner(Protocol):
    """Has jobs stored that need a plan before the tick."""

    def concerns(self, jobs: Sequence[NewJob]) -> bool:
        """True if one of these jobs, which have extras, needs a plan."""

    async def enqueue(
        self, keys: Sequence[int], jobs: Sequence[NewJob], now: int, size: int, reach: Reach
    ) -> EnqueueResult:
        """Store the jobs, all or none, in order. `size` is the bytes of their payloads."""


class Jobs:
    """Enqueues jobs, and reads and changes single jobs. `ids` name jobs in messages."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdCodec,
        inbox: Inbox,
        waiters: Waiters,
        admission: Admission,
        mint: Mint,
    ) -> None:
        self.checks = admission.checks
        """The checks of new payloads."""
        self.planners: list[EnqueuePlanner] = []
        """The first that is concerned stores the jobs of a request. Otherwise a tick does."""
        self._reads = store.reads
        self._clock = clock
        self._ids = ids
        self._inbox = inbox
        self._waiters = waiters
        self._admission = admission
        self._mint = mint

    # Jobs in

    async def enqueue(
        self,
        jobs: Sequence[NewJob],
        reach: Reach,
        waiter: Waiter | None = None,
        defaults: QueueSettings | None = None,
        registered_only: bool = False,
        through: EnqueueMaker | None = None,
    ) -> Accepted:
        """Store jobs, all or none, in order, or fold jobs with a batch into its host.

        `waiter` waits for the first job from before the commit. With `defaults`, settings that jobs
        and queues leave open are fixed; batches are not allowed then. With `registered_only`, a
        queue without settings raises `QueueNotRegistered`. `through` makes another command of a
        room, whose errors are raised too. Raises `QueueOutOfReach`, `SchemaMismatch`,
        `TooManyCompared`, `KeyConflict`, `QueueFull`, `StorageFull`, `WalFull`, `BulkTooLarge`, or
        `Unprocessable` if the rule of a batch fails.
        """
        if reach is not EVERYWHERE:
            reach.require(jobs)
            reach.require_budgets(key for job in jobs for key in job.makes or ())
        for check in self.checks:
            if check.in_use:
                await check.require([(job.queue, job.payload) for job in jobs])
        size = sum([job.payload_size for job in jobs])
        now = self._clock.now_ms()
        keys = self._mint.take(len(jobs), now)
        self._admission.admit(len(jobs), size)
        if waiter is not None:
            self._waiters.watch(waiter, keys[0])
        planner = self._planner_of(jobs) if any(map(_EXTRAS, jobs)) else None
        if planner is not None:
            if through is not None:
                raise InvalidRequest(
                    "jobs with a `batch` can neither be numbered by a producer nor come by an inbox"
                )
            reply = await planner.enqueue(keys, jobs, now, size, reach)
        else:
            reply = await self._inbox.ask(
                (through or Enqueue)(
                    keys=keys,
                    jobs=jobs,
                    now=now,
                    size=size,
                    reach=reach,
                    defaults=defaults,
                    registered_only=registered_only,
                )
            )
        if reply is ALL_STORED:
            return Accepted(keys, now, reply, joined=0)
        if reply.owners:
            await self._fill_in_results(reply.owners.values())
        return Accepted(keys, now, reply, joined=len(reply.known))

    async def enqueue_and_wait(
        self, job: NewJob, reach: Reach, wait_ms: int
    ) -> tuple[Accepted, Ending]:
        """Store one job and wait for it. For a duplicate, wait for its owner.

        For a folded job, wait for its host. Raises the errors of `enqueue`, and `JobNotFound` if
        the job is deleted.
        """
        with self._waiter(wait_ms) as waiter:
            stored = await self.enqueue([job], reach, waiter)
            return stored, await self._wait(waiter, reach, visible=True)

    def _planner_of(self, jobs: Sequence[NewJob]) -> EnqueuePlanner | None:
        """The planner of a request, if it needs a plan. Jobs without extras need none."""
        with_extras = [job for job in jobs if job.extras is not None]
        return next((each for each in self.planners if each.concerns(with_extras)), None)

    # Looking at one

    async def get(self, key: int, reach: Reach) -> JobRecord:
        """A job with its payload and result. Raises `JobNotFound`."""
        return _found(await self._reads.job(key, reach, self._clock.now_ms()))

    async def owner(self, unique_key: str, queue: str | None, reach: Reach) -> JobRecord:
        """The job that owns a unique key, with its payload and result. Raises `JobNotFound`.

        The key belongs to all queues or, if a queue is named, to that queue.
        """
        lock = _lock(unique_key, queue)
        return _found(await self._reads.owner(lock, reach, self._clock.now_ms()))

    async def ending(self, key: int, reach: Reach, wait_ms: int) -> Ending:
        """The outcome of a job. Waits for it up to `wait_ms`. Raises `JobNotFound`.

        If the job is not finished by then, the result is its present state.
        """
        with self._waiter(wait_ms) as waiter:
            self._waiters.watch(waiter, key)
            waiter.nudge()
            return await self._wait(waiter, reach, visible=reach is EVERYWHERE)

    async def errors(
        self, key: int, reach: Reach, after: int | None, descending: bool, limit: int
    ) -> tuple[list[ErrorRecord], bool]:
        """A job's failures beyond the attempt `after`, and whether more follow.

        There are up to `limit` of them, fewer if their texts are large. Raises `JobNotFound`.
        """
        _found(await self._reads.row(key, reach, self._clock.now_ms()))
        start = after if after is not None else (LAST if descending else FIRST)
        return await self._reads.errors_page(key, start, descending, limit)

    async def error(self, key: int, reach: Reach, attempt: int) -> ErrorRecord:
        """One failure. Raises `JobNotFound` or `ErrorRecordNotFound`."""
        records, _ = await self.errors(key, reach, attempt - 1, descending=False, limit=1)
        if not records or records[0].attempt != attempt:
            raise ErrorRecordNotFound
        return records[0]

    # Changing one

    async def patch(self, key: int, patch: Patch, reach: Reach) -> JobRecord:
        """Change a job.

        Raises `JobNotFound`, `Unprocessable` if it is finished, or `QueueOutOfReach`; `KeyTaken`
        and `QueueFull` if it may not enter the queue that the patch names.
        """
        reach.require([patch])
        return await self._inbox.ask(
            PatchJob(key=key, text_id=self._ids.text(key), patch=patch, reach=reach)
        )

    async def delete(self, key: int, reach: Reach) -> None:
        """Delete a job in any state. Raises `JobNotFound`."""
        await self._inbox.ask(DeleteJob(key=key, reach=reach))

    async def cancel(self, key: int, force: bool, reach: Reach) -> JobRecord:
        """Cancel a job; one in flight only by force. Raises `JobNotFound`, `NotCancellable`."""
        return await self._inbox.ask(CancelJob(key=key, force=force, reach=reach))

    async def cancel_owner(
        self, unique_key: str, queue: str | None, force: bool, reach: Reach
    ) -> JobRecord:
        """Cancel the owner of a unique key, which is named as for `owner`, in the same way."""
        lock = _lock(unique_key, queue)
        return await self._inbox.ask(CancelJob(lock=lock, force=force, reach=reach))

    async def retain(self, key: int, retention: Retention, reach: Reach) -> JobRecord:
        """Begin the retention of a finished job now. Raises `JobNotFound` or `NotFinished`."""
        return await self._inbox.ask(RetainJob(key=key, retention=retention, reach=reach))

    async def requeue(self, key: int, reach: Reach) -> JobRecord:
        """Make a dead job ready again. Raises `JobNotFound`, `NotDead`, `KeyTaken`, `QueueFull`."""
        return await self._inbox.ask(Revive(key=key, reach=reach))

    async def send_home(
        self,
        key: int,
        reach: Reach,
        defaults: QueueSettings | None = None,
        *,
        yields: bool = False,
    ) -> JobRecord:
        """Make a job ready in the queue in which it died first. Its limits begin anew.

        The job waits in a dead-letter queue or has died there. `defaults` are as for `enqueue`. A
        job that `yields` comes without its unique key if another has that by now. Raises
        `JobNotFound`, `NotDead`, `QueueOutOfReach`, `KeyTaken` or `QueueFull`.
        """
        revival = Revive(key=key, reach=reach, home=True, defaults=defaults, yields=yields)
        return await self._inbox.ask(revival)

    # Waiting for one

    @contextmanager
    def _waiter(self, wait_ms: int) -> Iterator[Waiter]:
        """A waiter whose time is `wait_ms` from now."""
        with self._waiters.waiter() as waiter:
            if not wait_ms:
                waiter.end()
            timer = self._clock.call_later(wait_ms / 1000, waiter.end)
            try:
                yield waiter
            finally:
                timer.cancel()

    async def _wait(self, waiter: Waiter, reach: Reach, *, visible: bool) -> Ending:
        """The result of `ending`, for a waiter that has its job.

        `visible` means that the job is known to lie within reach. Otherwise the job is read before
        the caller learns what the waiter was told.
        """
        while True:
            await waiter.wait()
            if waiter.outcome is not None and visible:
                return waiter.outcome
            assert waiter.key is not None
            found = await self._reads.ending(waiter.key, reach, self._clock.now_ms())
            if found is None:
                if waiter.outcome is not None and visible:
                    return waiter.outcome
                raise JobNotFound
            visible = True
            if found.is_final or waiter.ended:
                return waiter.outcome or found

    async def _fill_in_results(self, owners: Collection[JobRecord]) -> None:
        """Fill in the results of jobs that are stored apart, until they make a page together.

        Many duplicates may have the same owner, and all their answers have its result.
        """
        mentions = Counter(job.key for job in owners if job.result_beside)
        beside: list[int] = []
        left = PAGE_BYTES
        for key, job in {job.key: job for job in owners if job.result_beside}.items():
            left -= (job.result_size or 0) * mentions[key]
            if left < 0:
                break
            beside.append(key)
        if beside:
            bodies = await self._reads.results(beside)
            for job in owners:
                job.result = bodies.get(job.key, job.result)


def _lock(unique_key: str, queue: str | None) -> str:
    space = KeySpace.ALL if queue is None else KeySpace.QUEUE
    return lock_of(queue or "", unique_key, space)


def _found(job: JobRecord | None) -> JobRecord:
    if job is None:
        raise JobNotFound
    return job
