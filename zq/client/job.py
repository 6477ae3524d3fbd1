"""The handle of a job: waits for its result, follows its events, or cancels it."""

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, cast

from zq.client import replaced
from zq.client.amounts import Seconds
from zq.client.backend import Backend, run
from zq.client.errors import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobState,
    RetriesExhausted,
    WaitTimeout,
    ZqError,
)
from zq.client.events import follow
from zq.client.job_error import JobError
from zq.client.running import current, run_waiting
from zq.client.types import Convert
from zq.client.values import (
    MISSING,
    EventQuery,
    JobEvent,
    JobOutcome,
    State,
    StoredJob,
)

R = TypeVar("R")

CancelStatus = Literal["cancelled", "not_found", "in_flight", "completed", "dead", "expired"]
"""The outcome of a cancellation: done, no such job, or the status that forbids it."""

_ENDS = ("completed", "failed", "cancelled", "expired")

SHORT_WAIT_MS = 300
"""The longest wait of a handler for another job, in ms, before its worker looks for a deadlock."""

LONGEST_WAIT_MS = 30_000
"""The longest time that a server waits in one request."""


class Job(Generic[R]):
    """A job on the server. `duplicate` means that it existed already and nothing was stored.
    `folded` means that the call was joined to this waiting job.

    `state` is its status at that time, or None if the server knows no more than its id.
    """

    __slots__ = (
        "_backend",
        "_convert",
        "duplicate",
        "folded",
        "id",
        "key",
        "max_attempts",
        "queue",
        "state",
    )

    def __init__(
        self,
        stored: StoredJob,
        backend: Backend,
        convert: "Callable[[], Convert | None] | None" = None,
        key: str | None = None,
    ) -> None:
        self.id = stored.id
        self.key = stored.unique_key if key is None else key
        self.queue = stored.queue
        self.duplicate = stored.duplicate
        self.folded = stored.folded
        self.state: State | None = stored.status
        self.max_attempts = None if stored.retry_limit is None else stored.retry_limit + 1
        self._backend = backend
        self._convert = convert

    def __repr__(self) -> str:
        return f"<Job {self.id} in {self.queue}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            said = replaced.remedy(replaced.JOB_METHODS, name)
            raise AttributeError(f"a job has no {name!r}{said}", name=name, obj=self)

    async def result(self, timeout: Seconds | None = 30.0) -> R:
        """Wait for the final outcome. With a `timeout` of None, wait for ever.

        Raises `WaitTimeout`, `JobFailed`, `JobCancelled`, or `JobNotFound` if nothing of the job is
        kept.
        """
        return await self.outcome(self._backend, TimeLeft(timeout))

    def result_sync(self, timeout: Seconds | None = 30.0) -> R:
        """Like `result`, for code without an event loop: it blocks."""
        waiting = self.outcome(self._backend.blocking, TimeLeft(timeout))
        return run_waiting(waiting, "await job.result(…)")

    async def cancel(self, *, force: bool = False) -> CancelStatus:
        """Cancel the job if it waits. With `force`, cancel it also if it runs."""
        return await cancelled(self._backend.cancel(self.id, force=force))

    def cancel_sync(self, *, force: bool = False) -> CancelStatus:
        """Like `cancel`, for code without an event loop: it blocks."""
        return run(cancelled(self._backend.blocking.cancel(self.id, force=force)))

    async def events(self) -> AsyncGenerator[JobEvent, None]:
        """The events of the job from now on, up to its end; none if it has ended already.

        ``async for event in job.events()``; see `App.events`.
        """
        query = EventQuery(jobs=(self.id,))
        async with aclosing(follow(self._backend, query, None, self._is_over)) as events:
            async for event in events:
                yield event
                if event.type in _ENDS:
                    return

    async def _is_over(self) -> bool:
        try:
            return (await self._backend.result(self.id, 0)).is_final
        except JobNotFound:
            return True

    async def outcome(
        self, backend: Backend, left: "TimeLeft", known: JobOutcome | None = None
    ) -> R:
        """The result, through a backend of either kind. `known` is its known part."""
        job = current.get(None)
        if job is None or job.refuse_deadlock is None:
            return self.value(await self._final(backend, left, known))
        before, job.waits_for = job.waits_for, self.id
        try:
            return self.value(await self._final(backend, left, known, job.refuse_deadlock))
        finally:
            job.waits_for = before

    async def _final(
        self,
        backend: Backend,
        left: "TimeLeft",
        known: JobOutcome | None,
        look: Callable[[Backend], Awaitable[None]] | None = None,
    ) -> JobOutcome:
        """The final outcome. Within a job, look whether it can come at all."""
        most = LONGEST_WAIT_MS if look is None else SHORT_WAIT_MS
        while known is None or not known.is_final:
            wait_ms = min(left.ms(), most)
            if known is not None and wait_ms == 0:
                why = await reasons_of(backend, self.id) if left.seconds else ""
                raise WaitTimeout(
                    f"the job {self.id} is not finished after {left.seconds:g} s"
                    f" (it is {known.status}{why}). It goes on: wait again, or for longer",
                    self,
                )
            known = await backend.result(self.id, wait_ms)
            if look is not None and wait_ms and not known.is_final:
                await look(backend)
                most = LONGEST_WAIT_MS
        return known

    def value(self, outcome: JobOutcome) -> R:
        """The result of a final outcome. It is None if the worker sent none."""
        if outcome.status == "completed":
            result: Any = None if outcome.result is MISSING else outcome.result
            convert = None if self._convert is None else self._convert()
            value: R = result if convert is None or result is None else convert(result)
            return value
        if outcome.status == "cancelled":
            raise JobCancelled(f"the job {self.id} was cancelled")
        if outcome.status == "expired":
            raise JobNotFound(f"the job {self.id} expired before a worker took it")
        raise failure(self.id, outcome.error, self.max_attempts)


async def reasons_of(backend: Backend, id: str) -> str:
    """Why a job does not end now: `: nobody takes jobs of queue "mail"`, or nothing if unknown."""
    try:
        reasons = await backend.why(id)
    except ZqError:  # its key may not read, it has just ended, or the server is not zq
        return ""
    return f": {'; '.join(each.text for each in reasons)}" if reasons else ""


def failure(id: str, error: JobError | str | None, max_attempts: int | None) -> JobFailed:
    """The error to raise for a dead job."""
    if not isinstance(error, JobError):
        return JobFailed(f"the job {id} is dead: {error or 'its failure is not known'}")
    kind = f"{error.error_type}: " if error.error_type else ""
    if max_attempts is not None and error.attempt >= max_attempts:
        often = "" if error.attempt == 1 else f" {error.attempt} times, the last time"
        return RetriesExhausted(f"the job {id} failed{often} with {kind}{error.message}", error)
    return JobFailed(f"the job {id} failed with {kind}{error.message}", error)


async def cancelled(cancelling: Any) -> CancelStatus:
    """The outcome of a cancellation, as a value."""
    try:
        await cancelling
    except JobNotFound:
        return "not_found"
    except JobState as refused:
        return cast(CancelStatus, refused.state)
    return "cancelled"


class TimeLeft:
    """The rest of a time-out."""

    def __init__(self, timeout: Seconds | None) -> None:
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        self.seconds = math.inf if seconds is None else seconds
        """The whole time-out."""
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def first_ms(self) -> int:
        """Milliseconds to wait in the request that enqueues the job."""
        job = current.get(None)
        return self.ms() if job is None else min(self.ms(), SHORT_WAIT_MS)

    def ms(self) -> int:
        """Milliseconds to wait in the next request."""
        if self._deadline is None:
            return LONGEST_WAIT_MS
        left = max(0.0, self._deadline - time.monotonic())
        return min(LONGEST_WAIT_MS, round(left * 1000))
