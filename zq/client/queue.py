"""Queues by message id: each job has an id from its caller, and a second job of it is not stored.

An id is taken from the moment it is enqueued until the result is no longer kept, whether the job
succeeds or fails. Cancelling frees the id at once. The first payload wins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NoReturn,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from zq.client.amounts import Seconds, positive_ms
from zq.client.backend import Backend, run
from zq.client.core import Core, QueueHandler, check_function
from zq.client.errors import InvalidOption, JobNotFound, JobState
from zq.client.events import Event
from zq.client.job import CancelStatus, Job, TimeLeft, cancelled
from zq.client.job_error import JobError
from zq.client.options import DEFAULTS, Form, JobOptions, Options, check, merge
from zq.client.payloads import declared, taken, taken_by
from zq.client.running import run_waiting
from zq.client.types import Convert
from zq.client.values import MISSING, Missing, State, StoredJob, Submission
from zq.model.names import check_name

T = TypeVar("T")
R = TypeVar("R")
D = TypeVar("D")

H = TypeVar("H", bound=Callable[..., Any])

TtlUpdate = Literal["updated", "not_found", "not_terminal", "missing_payload"]
OnFailed = Literal["return", "requeue"]


@dataclass(frozen=True)
class Enqueued(Generic[R]):
    """One of three outcomes: new, a duplicate of a job in `existing_state`, or already completed.

    It is true only for a new job. If a duplicate's `existing_state` is completed, its result is no
    longer kept.
    """

    status: Literal["queued", "duplicate", "completed"]
    job: Job[R]
    existing_state: State | None = None
    result: R | Missing = MISSING

    def __bool__(self) -> bool:
        return self.status == "queued"


@dataclass(frozen=True)
class JobStatus(Generic[R]):
    """The state of a message id. Times are in milliseconds since the epoch."""

    id: str
    state: State
    created_at: int
    updated_at: int
    attempts: int
    """The number of failures so far."""
    job_id: str
    result: R | Missing = MISSING
    error: JobError | None = None


class Queue(Generic[T, R]):
    """Jobs of one queue, by message id. `sync` has the same methods for programs without a loop."""

    def __init__(
        self, core: Core, name: str, payload: Any, result: Any, own: Options, blocking: bool = False
    ) -> None:
        for option in own.keys() & {"key", "unique_while", "wait", "batch"}:
            raise InvalidOption(
                f"{option}: this is for tasks: a queue by message id uses the id as the key, and"
                " enqueue_and_wait has a timeout"
            )
        check_name("queue", name)
        self.core = core
        self.name = name
        self.effective = merge(DEFAULTS, core.defaults, own)
        if self.effective.get("result_ttl") is None:
            raise InvalidOption(
                "result_ttl: a queue by message id needs one: ids are kept as long as results"
            )
        self._payload = payload
        self._result = result
        self._payload_converter = taken(f"the payload of the queue {name!r}", payload)
        self._result_converter = declared(f"the result of the queue {name!r}", result)
        self._own = own
        self._blocking = blocking
        self._form = Form(name, name, self.effective, keep_dead=True)

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            blocking = name.removesuffix("_sync")
            known = name != blocking and hasattr(SyncQueue, blocking)
            remedy = f": call sync.{blocking}(…)" if known else ""
            raise AttributeError(f"a queue has no {name!r}{remedy}", name=name, obj=self)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        types = self._payload, self._result
        return Queue, (self.core, self.name, *types, self._own, self._blocking)

    @property
    def sync(self) -> "SyncQueue[T, R]":
        """The methods of this queue for code without an event loop: they block."""
        types = self._payload, self._result
        return SyncQueue(Queue(self.core, self.name, *types, self._own, blocking=True))

    def handler(self, function: H) -> H:
        """Make workers call this function. A second one replaces the first.

        ``handle(payload)`` or ``handle(payload, job)``, a coroutine function or not. A second
        parameter with a default gets the job only if it is annotated as `Running`. In a queue that
        was given no type of payloads, the annotation of the first parameter holds. Raises
        `InvalidOption` for one whose values cannot be sent.
        """
        check_function(function)
        convert: Any = self._payload_converter
        if self._payload is Any:
            convert = taken_by(f"the payload of the queue {self.name!r}", function)
        self.core.handlers[self.name] = QueueHandler(function, convert, self.effective)
        return function

    async def enqueue(
        self, id: str, payload: T, *, on_failed: OnFailed = "return", **options: Unpack[JobOptions]
    ) -> Enqueued[R]:
        """Enqueue a job unless its id is taken. `on_failed` is for the case that its job is dead.

        Raises `InvalidOption` before anything is sent.
        """
        wanted = self._submission(id, payload, on_failed, options)
        (stored,) = await self._backend.enqueue([wanted])
        return await self._enqueued(id, stored)

    async def enqueue_and_wait(
        self,
        id: str,
        payload: T,
        *,
        timeout: Seconds = 30.0,
        on_failed: OnFailed = "return",
        **options: Unpack[JobOptions],
    ) -> R:
        """Enqueue a job, or join the one with this id, and wait for its result.

        Raises `WaitTimeout` (the job goes on), `JobFailed` or `JobCancelled`.
        """
        left = TimeLeft(timeout)
        wanted = self._submission(id, payload, on_failed, options)
        known = await self._backend.enqueue_and_wait(wanted, left.first_ms())
        assert known.job is not None
        job = (await self._enqueued(id, known.job)).job
        return await job.outcome(self._backend, left, known)

    async def cancel(self, id: str, *, force: bool = False) -> CancelStatus:
        """Cancel a job that waits, or with `force` one that runs."""
        done = await cancelled(self._backend.cancel_by_key(self._key(id), force=force))
        if done == "cancelled" and self.core.events.wanted("cancelled"):
            event = Event("cancelled", self.name, key=id)
            await self.core.events.emit(event, blocking=self._blocking)
        return done

    async def status(self, id: str) -> JobStatus[R] | None:
        """The state of an id; None if the id is free."""
        try:
            stored = await self._backend.by_key(self._key(id))
            error = await self._error(stored)
        except JobNotFound:
            return None
        assert stored.status is not None
        changes = (stored.dequeued_at, stored.failed_at, stored.completed_at, stored.cancelled_at)
        return JobStatus(
            id,
            stored.status,
            stored.created_at,
            max(stored.created_at, *(at for at in changes if at is not None), 0),
            stored.attempts,
            stored.id,
            self._converted(stored.result),
            error,
        )

    @overload
    async def result(self, id: str) -> R: ...
    @overload
    async def result(self, id: str, default: D) -> R | D: ...
    async def result(self, id: str, default: Any = MISSING) -> Any:
        """The result of a completed job. For any other it is `default`, or raises `JobNotFound`."""
        try:
            stored = await self._backend.by_key(self._key(id))
        except JobNotFound:
            stored = None
        if stored is not None and stored.result is not MISSING:
            return self._converted(stored.result)
        if default is MISSING:
            raise JobNotFound(f"the queue {self.name} has no result for {id!r}")
        return default

    async def update_result_ttl(self, id: str, ttl: Seconds) -> TtlUpdate:
        """Keep the result or the error, and the id, for this time from now."""
        kept = positive_ms("result_ttl", ttl)
        try:
            stored = await self._backend.by_key(self._key(id))
            await self._backend.retain(stored.id, completed_ms=kept, dead_ms=kept)
        except JobNotFound:
            return "not_found"
        except JobState:
            return "not_terminal"
        return "updated"

    def job(self, id: str, payload: T) -> Submission:
        """The job with this id, in the form in which it is sent. Raises `InvalidOption`."""
        return self._submission(id, payload, "return", {})

    @property
    def _backend(self) -> Backend:
        return self.core.backend.blocking if self._blocking else self.core.backend

    def _key(self, id: str) -> str:
        if not isinstance(id, str) or not 0 < len(id.encode()) <= 512:
            raise InvalidOption(f"id: {id!r} is not text of 1 to 512 bytes")
        # Queue names have no comma, so ids of two queues never collide.
        return f"{self.name},{id}"

    def _submission(
        self, id: str, payload: T, on_failed: OnFailed, options: JobOptions
    ) -> Submission:
        form = self._form
        if options:
            check(options)
            for name in options.keys() - JobOptions.__optional_keys__:
                raise InvalidOption(f"{name}: a single job of a queue has no such option")
            merged = merge(self.effective, options)
            if merged.get("result_ttl") is None:
                raise InvalidOption("a queue by message id does not take result_ttl=None")
            form = Form(self.name, self.name, merged, keep_dead=True)
        conflict = "replace_dead" if on_failed == "requeue" else None
        return form.submission(payload, key=self._key(id), on_conflict=conflict)

    async def _enqueued(self, id: str, stored: StoredJob) -> Enqueued[R]:
        job: Job[R] = Job(stored, self.core.backend, self._convert, id)
        if not stored.duplicate:
            if self.core.events.wanted("enqueued"):
                event = Event("enqueued", self.name, stored.id, id)
                await self.core.events.emit(event, blocking=self._blocking)
            return Enqueued("queued", job)
        if stored.status == "completed" and stored.result is not MISSING:
            return Enqueued("completed", job, "completed", self._converted(stored.result))
        return Enqueued("duplicate", job, stored.status)

    def _convert(self) -> Convert | None:
        return self._result_converter

    def _converted(self, result: Any) -> R | Missing:
        if result is MISSING or result is None or self._result_converter is None:
            return cast(R, result)
        value: R = self._result_converter(result)
        return value

    async def _error(self, stored: StoredJob) -> JobError | None:
        """The last failure of a job that has failed."""
        if not stored.attempts:
            return None
        errors = await self._backend.errors(stored.id)
        return errors[-1] if errors else None


class SyncQueue(Generic[T, R]):
    """The methods of a `Queue`, blocking, for threads, forks and executors."""

    def __init__(self, queue: Queue[T, R]) -> None:
        self._queue = queue

    def enqueue(
        self, id: str, payload: T, *, on_failed: OnFailed = "return", **options: Unpack[JobOptions]
    ) -> Enqueued[R]:
        """See `Queue.enqueue`."""
        return run(self._queue.enqueue(id, payload, on_failed=on_failed, **options))

    def enqueue_and_wait(
        self,
        id: str,
        payload: T,
        *,
        timeout: Seconds = 30.0,
        on_failed: OnFailed = "return",
        **options: Unpack[JobOptions],
    ) -> R:
        """See `Queue.enqueue_and_wait`."""
        waiting = self._queue.enqueue_and_wait(
            id, payload, timeout=timeout, on_failed=on_failed, **options
        )
        return run_waiting(waiting, "await queue.enqueue_and_wait(…)")

    def cancel(self, id: str, *, force: bool = False) -> CancelStatus:
        """See `Queue.cancel`."""
        return run(self._queue.cancel(id, force=force))

    def status(self, id: str) -> JobStatus[R] | None:
        """See `Queue.status`."""
        return run(self._queue.status(id))

    @overload
    def result(self, id: str) -> R: ...
    @overload
    def result(self, id: str, default: D) -> R | D: ...
    def result(self, id: str, default: Any = MISSING) -> Any:
        """See `Queue.result`."""
        return run(self._queue.result(id, default))

    def update_result_ttl(self, id: str, ttl: Seconds) -> TtlUpdate:
        """See `Queue.update_result_ttl`."""
        return run(self._queue.update_result_ttl(id, ttl))
