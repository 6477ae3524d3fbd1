"""Tasks: functions that can be enqueued, with the types of their parameters and results."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import aclosing
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    overload,
)

from zq.client import replaced
from zq.client.backend import Backend, run
from zq.client.core import Core
from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.events import Event
from zq.client.hints import blocks_around
from zq.client.job import Job, TimeLeft
from zq.client.options import DEFAULTS, CallOptions, Form, Options, check, merge
from zq.client.running import run_waiting
from zq.client.signature import Signature
from zq.client.values import StoredJob, Submission

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")

CHUNK = 2000
"""The number of jobs in one request of `enqueue_many`."""


class Call(Generic[P]):
    """Checked arguments for one job. `Task.args` makes them for `Task.enqueue_many`."""

    if TYPE_CHECKING:
        fits: Callable[P, object]

    def __init__(self, payload: dict[str, Any]) -> None:
        self.payload = payload


def payload_of(call: Call[Any]) -> dict[str, Any]:
    """The payload of a job for a call. Raises `InvalidOption` for what is none."""
    if not isinstance(call, Call):
        raise InvalidOption(f"{call!r} is not a call of the task: write task.args(…) for each job")
    return call.payload


class Task(Generic[P, R]):
    """A function of an app. `await task.enqueue(…)` makes a worker call it with these arguments."""

    def __init__(
        self,
        core: Core,
        function: Callable[..., Any],
        name: str,
        queue: str,
        own: Options,
        said: Options | None = None,
        *,
        signature: Signature | None = None,
    ) -> None:
        """`own` are options that override the app's defaults, and `said` overrides both.

        Raises `InvalidOption` for annotations whose values cannot be sent.
        """
        said = {} if said is None else said
        self.core = core
        self.function = function
        self.name = name
        self.queue = queue
        self.effective = merge(DEFAULTS, core.defaults, own, said)
        self.signature = signature or Signature(
            function, checks=core.checks, place=blocks_around(function)
        )
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        self.__wrapped__ = function
        self._own = own
        self._said = said
        self._batched = self.effective.get("batch") is not None
        timeout = said.get("timeout")
        self._form = Form(queue, name, self.effective, timeout=timeout, function=function)

    def __repr__(self) -> str:
        return f"<Task {self.name} in {self.queue}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            remedy = f": call {replaced.METHODS[name]}" if name in replaced.METHODS else ""
            raise AttributeError(f"a task has no {name!r}{remedy}", name=name, obj=self)

    def options(self, **options: Unpack[CallOptions]) -> Self:
        """This task with other options. The task itself stays unchanged. Raises `InvalidOption`."""
        check(options)
        if "on_exception" in options:
            raise InvalidOption(
                "on_exception: workers read it where the task is declared: give it to the"
                " declaration, or to the app's defaults"
            )
        said = merge(self._said, options)
        parts = (self.core, self.function, self.name, self.queue, self._own, said)
        return type(self)(*parts, signature=self.signature)

    def args(self, *args: P.args, **kwargs: P.kwargs) -> Call[P]:
        """Arguments for `enqueue_many`."""
        return Call(self._payload(args, kwargs))

    def job(self, payload: Any) -> Submission:
        """The job of this task with a payload, in the form in which it is sent."""
        return self._form.submission(payload)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Store one job. `Job.duplicate` tells whether its key already had a job."""
        return await self._enqueue(self.core.backend, args, kwargs)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Like `enqueue`, for programs without an event loop: it blocks."""
        return run(self._enqueue(self.core.backend.blocking, args, kwargs))

    async def enqueue_many(self, calls: Iterable[Call[P]]) -> list[Job[R]]:
        """Store a job for each call, in their order, 2,000 in a request.

        The server stores a request completely or not at all. After a refused request no other is
        sent, and the earlier ones stay. A note on the error tells how many jobs are stored.
        """
        return await self._enqueue_many(self.core.backend, calls)

    def enqueue_many_sync(self, calls: Iterable[Call[P]]) -> list[Job[R]]:
        """Like `enqueue_many`, for code without an event loop: it blocks."""
        return run(self._enqueue_many(self.core.backend.blocking, calls))

    async def call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Store one job and wait for its result, as long as the option `wait` says.

        Raises the errors of `Job.result`. After `WaitTimeout` the job goes on.
        """
        return await self._call(self.core.backend, args, kwargs)

    def call_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Like `call`, for code without an event loop: it blocks."""
        waiting = self._call(self.core.backend.blocking, args, kwargs)
        return run_waiting(waiting, f"await {self.name}.call(…)")

    async def _enqueue(self, backend: Backend, args: Any, kwargs: Any) -> Job[R]:
        wanted = self._form.submission(self._payload(args, kwargs))
        try:
            (stored,) = await backend.enqueue([wanted])
        except InvalidPayload as error:
            raise self.signature.blamed(error, [wanted.payload]) from error
        return await self._stored(backend, stored)

    def _payload(self, args: Any, kwargs: Any) -> dict[str, Any]:
        if self._batched:
            return self.signature.named(args, kwargs)
        return self.signature.payload(args, kwargs)

    def _chunks(
        self, calls: Iterable[Call[P]], latest: list[Submission]
    ) -> Iterator[list[Submission]]:
        jobs = (self._form.submission(payload_of(call)) for call in calls)
        while chunk := list(islice(jobs, CHUNK)):
            latest[:] = chunk
            yield chunk

    async def _enqueue_many(self, backend: Backend, calls: Iterable[Call[P]]) -> list[Job[R]]:
        told = self.core.events.wanted("enqueued")
        done: list[Job[R]] = []
        latest: list[Submission] = []
        try:
            async with aclosing(backend.enqueue_each(self._chunks(calls, latest))) as batches:
                async for stored in batches:
                    done += [self._handle(each) for each in stored]
                    for each in stored if told else ():
                        await self._tell(backend, each)
        except Exception as raised:
            error = raised
            if isinstance(raised, InvalidPayload):
                error = self.signature.blamed(raised, [job.payload for job in latest])
            error.add_note(f"{len(done)} of the jobs were stored before that")
            raise error from raised.__cause__
        return done

    async def _call(self, backend: Backend, args: Any, kwargs: Any) -> R:
        left = TimeLeft(self.effective["wait"])
        wanted = self._form.submission(self._payload(args, kwargs))
        try:
            known = await backend.enqueue_and_wait(wanted, left.first_ms())
        except InvalidPayload as error:
            raise self.signature.blamed(error, [wanted.payload]) from error
        assert known.job is not None
        job = await self._stored(backend, known.job)
        return await job.outcome(backend, left, known)

    def _handle(self, stored: StoredJob) -> Job[R]:
        return Job(stored, self.core.backend, self.signature.result)

    async def _stored(self, backend: Backend, stored: StoredJob) -> Job[R]:
        if self.core.events.wanted("enqueued"):
            await self._tell(backend, stored)
        return self._handle(stored)

    async def _tell(self, backend: Backend, stored: StoredJob) -> None:
        if not (stored.duplicate or stored.folded):
            event = Event("enqueued", stored.queue, stored.id, stored.unique_key)
            await self.core.events.emit(event, blocking=backend is backend.blocking)


class SyncTask(Task[P, R]):
    """A task whose function is an ordinary one. Workers call it in a thread or a process."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function in this process, now."""
        result: R = self.function(*args, **kwargs)
        return result


class AsyncTask(Task[P, R]):
    """A task whose function is a coroutine function. Workers await it in their event loop."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function in this process, now."""
        coroutine: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return coroutine


class Decorator(Protocol):
    """The result of `app.task(…)` with options."""

    @overload  # Every coroutine function is also a function: the first overload that fits holds.
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Q, Coroutine[Any, Any, T]], /
    ) -> AsyncTask[Q, T]: ...
    @overload
    def __call__(self, function: Callable[Q, T], /) -> SyncTask[Q, T]: ...


class HasTasks(Protocol):
    """An app, or a part of one, as workers see it: its tasks, and what they share."""

    core: Core
    tasks: dict[str, Task[Any, Any]]

    @property
    def backend(self) -> Backend:
        """The server that the jobs come from."""
