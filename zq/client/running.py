"""The job that is being executed, as its handler sees it, and what a handler may raise."""

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, NoReturn, TypeVar

from zq.client.backend import Backend
from zq.client.errors import InvalidOption, StaleLease
from zq.client.events import EventName
from zq.client.sync import run
from zq.client.values import Delivery, Held
from zq.model.ids import rank, timestamp_ms

T = TypeVar("T")

Reason = Literal["timeout", "cancelled", "stalled", "requeued", "shutdown"]
"""Why an execution is ended: its time is up; somebody has cancelled the job by force; its lease was
not renewed in time; its delivery has ended otherwise; the worker stops."""


class Retry(Exception):
    """Raised in a handler: try again after `delay`, seconds or a timedelta, if a try is left.

    Raises `InvalidOption` for a delay that is none.
    """

    def __init__(
        self, message: str = "the handler asks for another try", delay: float | timedelta = 0
    ) -> None:
        super().__init__(message)
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise InvalidOption(f"delay: {delay!r} is no time: give seconds or a timedelta")
        self.delay = seconds


class Discard(Exception):
    """Raised in a handler: the job is of no use any more, there is to be no other try."""


class Kill(Exception):
    """Raised in a handler: this can never succeed, there is to be no other try."""


class Running(Generic[T]):
    """One delivery of a job. `attempt` counts executions that failed or run, from 1.

    `cancelled` is set once the outcome is of no account any more: on a time-out, when the delivery
    has ended, when the worker has to leave, and when the handler is done; `reason` says which of
    these, None where the handler is done. Coroutines are cancelled besides; threads have to look.
    """

    def __init__(self, delivery: Delivery, payload: T, backend: Backend) -> None:
        self.delivery = delivery
        self.payload = payload
        self.lost: EventName | None = None
        """What to call it, where the delivery has ended under way."""
        self.reason: Reason | None = None
        self.on_task: Callable[[asyncio.Future[Any]], None] | None = None
        """Hears of the tasks that the handler starts."""
        self._backend = backend
        self._cancelled: threading.Event | None = None
        self._ended = False

    @property
    def id(self) -> str:
        """The server's id of the job: a key for handlers that must not do a thing twice."""
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
        """None where the job leaves it to the server."""
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
        """A number that rises from job to job of a group, with gaps; None for jobs of none."""
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
        """Say that nobody waits for the outcome any more."""
        self._ended = True
        if self._cancelled is not None:
            self._cancelled.set()

    async def progress(self, data: Any) -> None:
        """Tell whoever listens to the job's events how far it is."""
        await self._backend.progress(self.id, data, self.delivery.lease)

    def progress_sync(self, data: Any) -> None:
        """The same, for a handler that is no coroutine function."""
        run(self._backend.blocking.progress(self.id, data, self.delivery.lease))

    async def extend(self, by: float | timedelta) -> None:
        """Hold the job for so long from now. Raises `StaleLease`."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        held = Held(self.id, self.delivery.lease)
        if await self._backend.extend([held], round(seconds * 1000)):
            raise StaleLease("this delivery of the job has ended: drop what came of it")

    def retry(self, *, delay: float | timedelta = 0) -> NoReturn:
        """Give up this try, and have another after `delay`."""
        raise Retry(delay=delay)


Middleware = Callable[[Running[Any], Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Wraps every execution: ``async def around(job, call_next): return await call_next()``."""

current: ContextVar[Running[Any]] = ContextVar("zq_current_job")


def current_job() -> Running[Any]:
    """The job that this code is executed for. Raises LookupError elsewhere."""
    try:
        return current.get()
    except LookupError:
        raise LookupError("no job is being executed here") from None
