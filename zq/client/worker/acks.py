"""Acknowledgements in bulk: while one request is under way, the next one gathers.

No acknowledgement waits for others: if no request is under way, it is sent at once.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar, get_args

import msgspec

from zq.client.backend import Backend
from zq.client.errors import BackendError, InvalidPayload, StaleLease, ZqError, concerns_jobs
from zq.client.formats import said_by
from zq.client.http.transport import jittered
from zq.client.values import Delivery, JobQuery, LeasedFailure, State, Success

log = logging.getLogger("zq.worker")

MOST_IN_A_POST = 2_500
MOST_LATE = 10_000

MOST_ASKED = 50
"""The most jobs whose status one request asks for."""

NOT_COMPLETED: tuple[State, ...] = tuple(each for each in get_args(State) if each != "completed")

T = TypeVar("T")

Done = tuple[Delivery, Success]
"""A delivery that was executed, and its acknowledgement."""


def follows(again: Delivery, before: Delivery) -> bool:
    """True if a delivery is the next one of the same job, with no other worker in between."""
    same = again.attempts == before.attempts and again.payload == before.payload
    return same and again.lease == (before.lease or 0) + 1


class Acknowledger:
    """Sends successes, in one task, and repeats until the server has answered."""

    def __init__(
        self,
        backend: Backend,
        on_stored: Callable[[Iterable[str]], object],
        on_lost: Callable[[str], Awaitable[None]],
        on_unstored: Callable[[Delivery, LeasedFailure], Awaitable[None]],
    ) -> None:
        """`on_stored` is called with the ids of jobs whose success the server has stored, `on_lost`
        for acknowledgements that came too late, and `on_unstored` for jobs that have failed because
        the server cannot store their results."""
        self._backend = backend
        self._on_stored = on_stored
        self._on_lost = on_lost
        self._on_unstored = on_unstored
        self._pending: dict[str, Done] = {}
        self._posting: dict[str, Done] = {}
        self._late: OrderedDict[str, Done] = OrderedDict()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, delivery: Delivery, success: Success) -> None:
        """Send an acknowledgement with the next request."""
        self._pending[success.id] = delivery, success
        self._idle.clear()
        self._wake.set()

    def adopt(self, again: Delivery) -> bool:
        """True if a redelivered job is already done and only needs its acknowledgement again.

        This happens if a broken stream ended the earlier delivery before its request was sent.
        """
        id = again.id
        known = self._pending.get(id) or self._posting.get(id) or self._late.pop(id, None)
        if known is None or not follows(again, known[0]):
            return False
        self.add(again, msgspec.structs.replace(known[1], lease=again.lease))
        return True

    @property
    def is_idle(self) -> bool:
        """True if everything that was added is settled."""
        return self._idle.is_set()

    async def drained(self) -> None:
        """Wait until everything that was added is settled."""
        await self._idle.wait()

    async def run(self) -> None:
        """Send acknowledgements for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                self._posting = self._batch()
                await self._post(list(self._posting.values()))
                self._posting = {}
            self._idle.set()

    def _batch(self) -> dict[str, Done]:
        if len(self._pending) <= MOST_IN_A_POST:
            batch, self._pending = self._pending, {}
            return batch
        ids = list(self._pending)[:MOST_IN_A_POST]
        return {id: self._pending.pop(id) for id in ids}

    async def _post(self, batch: Sequence[Done]) -> None:
        successes = [success for _, success in batch]
        doubts: set[str] = set()
        try:
            refused = await persistently(lambda: self._backend.succeed(successes), doubts)
        except ZqError as error:
            await self._apart(batch, error)
            return
        except KeyboardInterrupt as error:  # of the code of a result: a signal comes otherwise
            await self._apart(batch, InvalidPayload(said_by(error)))
            return
        late = {*refused.stale, *refused.not_found}
        if doubts and late:
            late = await self._unfinished(late)
        self._on_stored(id for success in successes if (id := success.id) not in late)
        if late:
            await self._remember(late, batch)

    async def _unfinished(self, late: set[str]) -> set[str]:
        """Those that were not completed by an earlier try whose answer was lost.

        A completed job may be deleted.
        """
        ids, unfinished = tuple(late), set[str]()
        try:
            for start in range(0, len(ids), MOST_ASKED):
                some = JobQuery(statuses=NOT_COMPLETED, ids=ids[start : start + MOST_ASKED])
                found = await self._backend.jobs(some, limit=MOST_ASKED)
                unfinished.update(job.id for job in found.jobs)
        except ZqError as error:
            log.warning("whether successes were stored is not known: %s", error)
            return late
        return unfinished

    async def _remember(self, refused: set[str], batch: Sequence[Done]) -> None:
        """Remember acknowledgements that came too late. A job delivered here again need not run."""
        for done in batch:
            id = done[1].id
            if id in refused and id not in self._pending:
                self._late[id] = done
                await self._on_lost(id)
        while len(self._late) > MOST_LATE:
            self._late.popitem(last=False)

    async def _apart(self, batch: Sequence[Done], error: ZqError) -> None:
        """Find the result in the batch that the server refuses, and report its job as failed."""
        if len(batch) > 1:
            half = len(batch) // 2
            await self._post(batch[:half])
            await self._post(batch[half:])
            return
        ((delivery, success),) = batch
        failure = LeasedFailure(
            f"the server cannot store the result: {error.message}",
            "ResultNotSerializable",
            kill=True,
            lease=success.lease,
        )
        if await report(self._backend, delivery, failure, self._on_lost):
            await self._on_unstored(delivery, failure)


async def report(
    backend: Backend,
    delivery: Delivery,
    failure: LeasedFailure,
    on_lost: Callable[[str], Awaitable[None]],
) -> bool:
    """Report a failure until the server has answered; returns whether the report counts."""
    id = delivery.id
    doubts: set[str] = set()
    try:
        await persistently(lambda: backend.fail(id, failure), doubts)
    except StaleLease:
        if doubts and await _is_recorded(backend, delivery, failure):
            return True
        await on_lost(id)
        return False
    except ZqError as error:
        log.error("the failure of the job %s could not be reported: %s", id, error)
        return False
    return True


async def _is_recorded(backend: Backend, delivery: Delivery, failure: LeasedFailure) -> bool:
    """Whether an earlier try whose answer was lost has reported the failure."""
    try:
        errors = await backend.errors(delivery.id)
    except ZqError:
        return False
    wanted = delivery.attempts + 1, failure.error_type
    return any((each.attempt, each.error_type) == wanted for each in errors)


async def persistently(send: Callable[[], Awaitable[T]], doubts: set[str] | None = None) -> T:
    """Try as long as the jobs are not at fault: what a proxy or the access key is at fault for may
    pass. Raises any other error.

    `doubts` gets the codes of errors after which a try may have had an effect all the same.
    """
    attempt = 0
    while True:
        try:
            return await send()
        except BackendError as error:
            if concerns_jobs(error):
                raise
            if error.in_doubt and doubts is not None:
                doubts.add(error.code)
            log.warning("a report to the server failed and is tried again: %s", error)
            await asyncio.sleep(jittered(attempt))
            attempt += 1
