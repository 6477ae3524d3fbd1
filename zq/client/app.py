"""The app: the server's address, tasks and queues, and the middleware around each job."""

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    NoReturn,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from zq.client import replaced
from zq.client.backend import Backend, run
from zq.client.checks import wanted
from zq.client.connect import connect
from zq.client.core import Core, Elsewhere, HasAddress, check_function, keep_loggers
from zq.client.errors import InvalidOption
from zq.client.events import Listener, follow
from zq.client.files.discovery import discover
from zq.client.files.queue import FileQueue
from zq.client.formats import JSON, Codec
from zq.client.http.address import Tls
from zq.client.job import Job
from zq.client.options import Options, check
from zq.client.periodic import Periodic
from zq.client.queue import Queue
from zq.client.running import EventName, Middleware
from zq.client.task import AsyncTask, Decorator, SyncTask, Task
from zq.client.values import EventQuery, EventType, JobEvent, StoredJob
from zq.model.names import check_name

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
L = TypeVar("L", bound=Listener)
W = TypeVar("W", bound=Callable[[], Any])
C = TypeVar("C", bound=Callable[[], Coroutine[Any, Any, None]])
S = TypeVar("S", bound=str)


class App:
    """Tasks and queues of one server. The app opens connections when something is enqueued.

    ``async with app:`` closes the connections at the end. ``with app:`` does so for programs
    without an event loop.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        codec: Codec = JSON,
        tls: Tls | None = None,
        defaults: Options | None = None,
        middleware: Sequence[Middleware] = (),
        standby: bool = False,
        cron_group: str | None = None,
        check_calls: bool | None = None,
        backend: Backend | None = None,
    ) -> None:
        """Without `url`, `token` and `tls`, the variables ZQ_URL, ZQ_TOKEN and ZQ_CA are used.

        Servers that share a database may be named together: ``http://one:7890,http://two:7890``.

        A data directory (``sqlite:///…``) has one owner. Another process is refused. With `standby`
        it waits instead until the owner has ended, and then goes on with the jobs.

        `cron_group` is the group of the app's schedules: see `periodic`. Apps that share a server
        need one each. An app that is given one registers it even when it has no schedules left. An
        app without one leaves the schedules of others alone, and those that it had before.

        Calls of tasks whose arguments are not of their plain annotated types are refused, unless
        `check_calls` is false, or nothing is said and the variable ZQ_CHECK_CALLS is ``no``.
        """
        keep_loggers()
        backend = connect(url, token, codec, tls, standby=standby) if backend is None else backend
        self.core = Core(backend, {} if defaults is None else defaults, checks=wanted(check_calls))
        check(self.core.defaults)
        if "key" in self.core.defaults:
            raise InvalidOption("key: all jobs of the app would have the same one")
        if callable(middleware):
            raise InvalidOption("middleware: give a list of functions, also for a single one")
        self.core.middleware = tuple(middleware)
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.periodic_tasks = Periodic(self.core, cron_group)
        if cron_group is not None:
            self._register_at_start()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            said = replaced.remedy(replaced.APP_METHODS, name)
            raise AttributeError(f"an app has no {name!r}{said}", name=name, obj=self)

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process only enqueues; no worker uses it.
        return {"core": self.core, "tasks": {}}

    @property
    def middleware(self) -> tuple[Middleware, ...]:
        """Functions around each job, the outermost first. They run where its handler does."""
        return self.core.middleware

    @middleware.setter
    def middleware(self, functions: Sequence[Middleware]) -> None:
        self.core.middleware = tuple(functions)

    @property
    def backend(self) -> Backend:
        """The server."""
        return self.core.backend

    @overload  # Every coroutine function is also a function: the first overload that fits holds.
    def task(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...
    @overload
    def task(
        self, *, queue: str = "default", name: str | None = None, **options: Unpack[Options]
    ) -> Decorator: ...
    def task(  # type: ignore[misc]  # mypy does not see that **Any takes every option
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        queue: str = "default",
        name: str | None = None,
        **options: Any,
    ) -> Any:
        """Make a task of a function. Calling it still calls the function.

        Its `name`, by default the function's, is the type of its jobs. Raises `InvalidOption`.
        """
        check(options, "queue", "name")
        check_name("queue", queue)

        def register(function: Callable[..., Any]) -> Task[Any, Any]:
            if isinstance(function, Task):
                raise InvalidOption(f"{function.name} is a task already: write @app.task once")
            check_function(function)
            chosen = check_name("type", function.__name__ if name is None else name)
            if chosen in self.tasks:
                raise InvalidOption(f"a task {chosen!r} exists already: give this one a name=")
            kind = AsyncTask if inspect.iscoroutinefunction(function) else SyncTask
            self.tasks[chosen] = kind(self.core, function, chosen, queue, cast(Options, options))
            return self.tasks[chosen]

        return register if function is None else register(function)

    def periodic(
        self,
        expression: str,
        *,
        tz: str | None = None,
        queue: str = "default",
        name: str | None = None,
        **options: Unpack[Options],
    ) -> Decorator:
        """Have the server enqueue a function, or a task, whenever a cron expression comes.

        A function becomes a task with these options, which a task has already. It is called without
        arguments. `tz` is an IANA zone; without one, the server's holds. Workers register the
        schedules when they start. If the app has a `cron_group`, they remove those that the code no
        longer names. Give it a `key` so that no run begins while another one goes on. Raises
        `InvalidOption`.
        """
        if not isinstance(expression, str):
            raise InvalidOption(
                f"periodic: {expression!r} is not a cron expression: write, for example,"
                ' @app.periodic("*/5 * * * *")'
            )

        def register(function: Any) -> Any:
            if isinstance(function, Task):
                if options or name is not None or queue != "default":
                    raise InvalidOption("periodic: the task has options of its own: give it these")
                task: Task[Any, Any] = function
            else:
                task = self.task(queue=queue, name=name, **options)(function)
            if not self.periodic_tasks.schedules:
                self._register_at_start()
            self.periodic_tasks.add(task, expression, tz)
            return task

        return cast(Decorator, register)

    def _register_at_start(self) -> None:
        register = self.periodic_tasks.register
        if register not in self.core.beginning:
            self.core.beginning += (register,)

    @overload
    def queue(
        self, name: str, *, payload: type[T], result: type[R], **options: Unpack[Options]
    ) -> Queue[T, R]: ...
    @overload
    def queue(
        self, name: str, *, payload: type[T], **options: Unpack[Options]
    ) -> Queue[T, Any]: ...
    @overload
    def queue(self, name: str, *, result: type[R], **options: Unpack[Options]) -> Queue[Any, R]: ...
    @overload
    def queue(self, name: str, **options: Unpack[Options]) -> Queue[Any, Any]: ...
    def queue(
        self, name: str, *, payload: Any = Any, result: Any = Any, **options: Unpack[Options]
    ) -> Queue[Any, Any]:
        """The queue of this name, by message id. Values are converted to the given types.

        Raises `InvalidOption`.
        """
        check(options)
        return Queue(self.core, name, payload, result, options)

    def job(self, id: str) -> Job[Any]:
        """The job with this id, for its result, its events or its end. Nothing is sent yet."""
        return Job(StoredJob(id), self.backend)

    def discover(self, folder: str | Path) -> list[FileQueue[Any]]:
        """Make queues of the files in a folder: see `zq.client.files.discovery`.

        Workers of this app handle their jobs, and `zq.queues[name]` finds them. Raises
        `DiscoveryError`.
        """
        return discover(self.core, Path(folder))

    def on(self, event: EventName) -> Callable[[L], L]:
        """Call a function, or await a coroutine function, whenever this happens in this process.

        Raises `InvalidOption` for the name of no event.
        """

        def register(listener: L) -> L:
            self.core.events.add(event, listener)
            return listener

        return register

    def on_startup(self, function: W) -> W:
        """Let workers call this, or await it, before they take their first job.

        With `processes`, each of these calls it too.
        """
        self.core.startup += (function,)
        return function

    def on_shutdown(self, function: W) -> W:
        """Let workers call this, or await it, after their last job, and each of their processes.

        It gets a few seconds. It is not called if the worker has to end at once, or if a function
        for the start has failed.
        """
        self.core.shutdown += (function,)
        return function

    def while_working(self, function: C) -> C:
        """Let workers run this coroutine function while they work. Its error ends the worker."""
        self.core.companions += (function,)
        return function

    def use(self, server: str | HasAddress) -> Elsewhere:
        """Work with another server inside a block: ``with app.use("sqlite://:memory:"):``.

        `server` is an address, or has one as its `url`. Tasks, queues and new workers of the app
        use it until the end of the block. Raises `InvalidOption`.
        """
        return Elsewhere(self.core, connect(server if isinstance(server, str) else server.url))

    def immediate(self) -> Elsewhere:
        """Run handlers when a job is enqueued, inside a block: ``with app.immediate():``.

        The app has an engine of its own in memory meanwhile. Enqueuing returns after the handlers
        have run, and after the jobs that these have enqueued. Failed jobs are tried again without a
        wait, because the engine's clock is moved forward. The first final failure raises the
        handler's own exception. A job with a `delay` waits for its time.
        """
        # Few programs need the engine.
        from zq.client.embedded.immediate import immediate

        return immediate(self)

    def events(
        self,
        *,
        queue: str | Sequence[str] = (),
        job: str | Sequence[str] = (),
        types: EventType | Sequence[EventType] = (),
        since: str | None = None,
    ) -> AsyncGenerator[JobEvent, None]:
        """The events of jobs on the server: ``async for event in app.events(queue="mail")``.

        It begins with the next event, or after the one whose `event_id` is `since`. A broken
        connection is opened again. A `gap` stands for events that the server no longer has.
        """
        query = EventQuery(_several(queue), _several(job), _several(types))
        return follow(self.backend, query, since)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        run(self.backend.blocking.close())

    async def close(self) -> None:
        """Close the connections; the next use opens others."""
        await self.backend.close()
        await self.backend.blocking.close()


def _several(said: S | Sequence[S]) -> tuple[S, ...]:
    return (said,) if isinstance(said, str) else tuple(said)
