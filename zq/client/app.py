"""The app: where the server is, which tasks and queues there are, what goes around each job."""

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, Unpack, cast, overload

from zq.client.backend import Backend
from zq.client.connect import connect
from zq.client.core import Core
from zq.client.errors import InvalidOption
from zq.client.events import EventName, Listener
from zq.client.files.discovery import discover
from zq.client.files.queue import FileQueue
from zq.client.following import follow
from zq.client.formats import JSON, Codec
from zq.client.options import Options, check
from zq.client.queue import Queue
from zq.client.running import Middleware
from zq.client.sync import run
from zq.client.task import AsyncTask, Decorator, SyncTask, Task
from zq.client.transport import Tls
from zq.client.values import EventQuery, EventType, JobEvent
from zq.model.names import check_name

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
L = TypeVar("L", bound=Listener)
W = TypeVar("W", bound=Callable[[], Any])
S = TypeVar("S", bound=str)


class App:
    """Tasks and queues of one server. Nothing is opened until something is enqueued.

    ``async with app:`` closes the connections at the end, and so does ``with app:`` those of
    blocking programs.
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
        backend: Backend | None = None,
    ) -> None:
        """Without `url`, `token` and `tls`, the variables ZQ_URL, ZQ_TOKEN and ZQ_CA count.

        A data directory (``sqlite:///…``) has one owner. Another process is refused, or with
        `standby` waits until the owner has ended, and goes on with the jobs.
        """
        backend = connect(url, token, codec, tls, standby=standby) if backend is None else backend
        self.core = Core(backend, {} if defaults is None else defaults)
        check(self.core.defaults)
        if "key" in self.core.defaults:
            raise InvalidOption("key: no two jobs would ever be enqueued with the same one")
        self.middleware = tuple(middleware)
        self.tasks: dict[str, Task[Any, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process enqueues there; it is no worker's app.
        return {"core": self.core, "middleware": (), "tasks": {}}

    @property
    def backend(self) -> Backend:
        """The server."""
        return self.core.backend

    @overload  # Every coroutine function is a function too: the first that fits holds.
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
        check(options)
        check_name("queue", queue)

        def register(function: Callable[..., Any]) -> Task[Any, Any]:
            chosen = check_name("type", function.__name__ if name is None else name)
            if chosen in self.tasks:
                raise InvalidOption(f"there is a task {chosen!r} already: give this one a name=")
            kind = AsyncTask if inspect.iscoroutinefunction(function) else SyncTask
            self.tasks[chosen] = kind(self.core, function, chosen, queue, cast(Options, options))
            return self.tasks[chosen]

        return register if function is None else register(function)

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
        """The queue of this name, by message id. Values are made into what is annotated.

        Raises `InvalidOption`.
        """
        check(options)
        return Queue(self.core, name, payload, result, options)

    def discover(self, folder: str | Path) -> list[FileQueue[Any]]:
        """Make queues of the files in a folder: see `zq.client.files.discovery`.

        Workers of this app handle their jobs, and `zq.queues[name]` finds them. Raises
        `DiscoveryError`.
        """
        return discover(self.core, Path(folder))

    def on(self, event: EventName) -> Callable[[L], L]:
        """Have a function called, or a coroutine function awaited, when this happens here."""

        def register(listener: L) -> L:
            self.core.events.add(event, listener)
            return listener

        return register

    def on_startup(self, function: W) -> W:
        """Have workers call this, or await it, before they take their first job."""
        self.core.startup += (function,)
        return function

    def events(
        self,
        *,
        queue: str | Sequence[str] = (),
        job: str | Sequence[str] = (),
        types: EventType | Sequence[EventType] = (),
        since: str | None = None,
    ) -> AsyncGenerator[JobEvent, None]:
        """What happens to jobs on the server: ``async for event in app.events(queue="mail")``.

        It begins with what happens next, or after the event whose `event_id` is `since`, and goes
        on across broken connections. What the server does not have any more is told as a `gap`.
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
