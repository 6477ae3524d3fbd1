"""A job while its handler runs, and the exceptions that a handler may raise."""

import asyncio
import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Generic, Literal, NoReturn, TypeVar

from zq.client.amounts import milliseconds, whole
from zq.client.backend import Backend, run
from zq.client.errors import InvalidOption, StaleLease
from zq.client.values import Delivery, Held
from zq.model.ids import rank, timestamp_ms
from zq.model.job import MAX_UINT32

T = TypeVar("T")

Reason = Literal["timeout", "cancelled", "stalled", "requeued", "shutdown"]
"""Why an execution ends early: its time is up; the job was cancelled by force; its lease was not
renewed in time; its delivery has ended for another reason; the worker stops."""


class Retry(Exception):
    """Raised in a handler: try again after `delay` (seconds or a timedelta) if an attempt is left.

    Raises `InvalidOption` for a delay that is not a time.
    """

    def __init__(
        self, message: str = "the handler asks for another try", delay: float | timedelta = 0
    ) -> None:
        super().__init__(message)
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise InvalidOption(f"delay: {delay!r} is not a time: give seconds or a timedelta")
        self.delay = seconds


class GiveBack(Exception):
    """Raised in a handler: the job goes back to its queue, and no attempt is spent.

    A worker gets it again after `delay` (seconds or a timedelta), and once all its gates are open.
    Raises `InvalidOption` for a delay that is not a time.
    """

    def __init__(self, delay: float | timedelta = 0) -> None:
        super().__init__("the handler gives the job back")
        self.delay_ms = milliseconds("delay", delay)


class Discard(Exception):
    """Raised in a handler: the job is no longer useful, and must not be tried again."""


class Kill(Exception):
    """Raised in a handler: the job can never succeed, and must not be tried again."""


EventName = Literal[
    "started",
    "stopped",
    "error",
    "enqueued",
    "completed",
    "failed",
    "failing",
    "requeued",
    "cancelled",
    "stalled",
]
"""failing: the job has failed and will be tried again. requeued: it was returned unfinished.
stalled: its lease was not renewed in time, so this worker has lost it. error: a fault of the
worker itself."""


class Running(Generic[T]):
    """One delivery of a job. `attempt` counts executions from 1: those that failed, and this one.

    `cancelled` is set once the outcome no longer counts: on a time-out, when the delivery has
    ended, when the worker must stop, and when the handler has finished. `reason` tells which; it is
    None when the handler has finished. Coroutines are cancelled as well. Threads must check
    `cancelled`.
    """

    def __init__(self, delivery: Delivery, payload: T, backend: Backend) -> None:
        self.delivery = delivery
        self.payload = payload
        self.lost: EventName | None = None
        """The event to emit if the delivery ends while the handler runs."""
        self.reason: Reason | None = None
        self.on_task: Callable[[asyncio.Future[Any]], None] | None = None
        """Called with each task that the handler starts."""
        self.spent: dict[str, int] = {}
        """What `used` has said, by budget."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the worker."""
        self.waits_for: str | None = None
        """The id of the job for whose end the handler waits."""
        self.refuse_deadlock: Callable[[Backend], Awaitable[None]] | None = None
        """Raises `Deadlock` if that job cannot begin, as far as the worker knows."""
        self._backend = backend
        self._cancelled: threading.Event | None = None
        self._ended = False

    @property
    def id(self) -> str:
        """The server's id of the job. Handlers can use it as an idempotency key."""
        return self.delivery.id

    @property
    def type(self) -> str:
        """The task's name."""
        return self.delivery.type

    @property
    def queue(self) -> str:
        return self.delivery.queue

    @property
    def key(self) -> str | None:
        """The unique key, or the message id in a queue by message id."""
        key = self.delivery.unique_key
        return None if key is None else key.removeprefix(f"{self.delivery.queue},")

    @property
    def attempt(self) -> int:
        return self.delivery.attempts + 1

    @property
    def max_attempts(self) -> int | None:
        """The most executions of the job; None if the job leaves that to the server."""
        limit = self.delivery.retry_limit
        return None if limit is None else limit + 1

    @property
    def created_at(self) -> datetime:
        return datetime.fromtimestamp(timestamp_ms(self.delivery.id) / 1000, UTC)

    @property
    def group(self) -> str | None:
        return self.delivery.group

    @property
    def sequence(self) -> int | None:
        """A number that rises, with gaps, from job to job of a group; None without a group."""
        return None if self.delivery.group is None else rank(self.delivery.id)

    @property
    def meta(self) -> dict[str, Any]:
        return dict(self.delivery.meta or {})

    @property
    def user(self) -> str | None:
        user: str | None = (self.delivery.meta or {}).get("user")
        return user

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the web request that pushed the job."""
        params: dict[str, Any] = (self.delivery.meta or {}).get("params", {})
        return params

    @property
    def traceparent(self) -> str | None:
        return self.delivery.traceparent

    @property
    def cancelled(self) -> threading.Event:
        if self._cancelled is None:
            self._cancelled = threading.Event()
            if self._ended:
                self._cancelled.set()
        return self._cancelled

    def end(self) -> None:
        """Set `cancelled`: the outcome no longer counts."""
        self._ended = True
        if self._cancelled is not None:
            self._cancelled.set()

    async def progress(self, data: Any) -> None:
        """Report progress to the listeners of the job's events."""
        await self._backend.progress(self.id, data, self.delivery.lease)

    def progress_sync(self, data: Any) -> None:
        """Like `progress`, for handlers that are not coroutine functions."""
        run(self._backend.blocking.progress(self.id, data, self.delivery.lease))

    async def extend(self, by: float | timedelta) -> None:
        """Set the deadline of the job to this time from now. Raises `StaleLease`."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        held = Held(self.id, self.delivery.lease)
        if await self._backend.extend([held], round(seconds * 1000)):
            raise StaleLease

    def used(self, budget: str, tokens: int) -> None:
        """Say how many tokens of a budget this job has used, instead of those that it drew.

        It counts if the job succeeds, and draws from a budget whose tokens come with time. The
        budget may go below zero. Raises `InvalidOption` for what is no number of tokens.
        """
        self.spent[budget] = whole("used", tokens, 0, MAX_UINT32)

    def retry(self, *, delay: float | timedelta = 0) -> NoReturn:
        """End this attempt, and ask for another after `delay`."""
        raise Retry(delay=delay)


Middleware = Callable[[Running[Any], Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Wraps every execution: ``async def around(job, call_next): return await call_next()``."""

current: ContextVar[Running[Any]] = ContextVar("zq_current_job")


def current_job() -> Running[Any]:
    """The running job of this code. Raises LookupError outside of jobs."""
    try:
        return current.get()
    except LookupError:
        raise LookupError("this code does not run in a job") from None


def run_waiting(coroutine: Coroutine[Any, Any, T], instead: str) -> T:
    """Do as `run` does, for what waits for another job.

    Raises RuntimeError in a coroutine handler, whose worker would stand still meanwhile.
    """
    job = current.get(None)
    if job is not None and job.loop is not None and job.loop is _running_loop():
        coroutine.close()
        raise RuntimeError(f"this would block the event loop of the worker: write {instead}")
    return run(coroutine)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def around_all(
    middleware: Sequence[Middleware], job: Running[Any], work: Callable[[], Awaitable[Any]]
) -> Any:
    """Do the work for a job within its middleware, the outermost first."""
    for each in reversed(middleware):
        work = partial(each, job, work)
    return await work()


def ends_task(error: BaseException) -> bool:
    """True if this ends the task that has called other code, rather than being a fault of the code.

    Code may raise a CancelledError of its own.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, GeneratorExit)


async def call_all(functions: Iterable[Callable[[], Any]]) -> None:
    """Call functions one after the other, and await those that are coroutine functions."""
    for function in functions:
        waiting = function()
        if inspect.isawaitable(waiting):
            await waiting
