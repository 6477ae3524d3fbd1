"""The state that an app's tasks and queues share, and another server for them within a block."""

import inspect
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from zq.client.backend import Backend, run
from zq.client.errors import InvalidOption
from zq.client.events import Listeners
from zq.client.options import Options
from zq.client.payloads import Undecided
from zq.client.running import Middleware
from zq.client.types import Convert


@dataclass(frozen=True)
class QueueHandler:
    """The function for the jobs of a queue."""

    function: Callable[..., Any]
    convert: Convert | Undecided | None
    options: Options
    middleware: tuple[Middleware, ...] = ()
    """Middleware around each job, inside that of the app."""


@dataclass
class Core:
    """The server, the options of all jobs, listeners, and the handlers of queues."""

    backend: Backend
    defaults: Options
    events: Listeners = field(default_factory=Listeners)
    handlers: dict[str, QueueHandler] = field(default_factory=dict)
    checks: bool = True
    """True if the arguments of calls are held to the annotations of tasks."""
    middleware: tuple[Middleware, ...] = ()
    """Middleware around each job, the outermost first."""
    beginning: tuple[Callable[[], Any], ...] = ()
    """Functions that a worker calls for its app before `startup`, and its processes do not."""
    startup: tuple[Callable[[], Any], ...] = ()
    """Functions that are called, or awaited, before a worker takes its first job."""
    shutdown: tuple[Callable[[], Any], ...] = ()
    """Functions that are called, or awaited, after a worker's last job."""
    companions: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    """Coroutine functions that run while a worker does."""
    find: Callable[[str], Any] | None = None
    """Finds the task, or None, for a type of jobs that the app does not know. It raises nothing."""
    finder: tuple[str, ...] = ()
    """How another process finds such a task: a function's module and name, and what it is called
    with before the type of the jobs."""

    def __reduce__(self) -> tuple[Any, tuple[Backend, Options]]:
        # A copy in another process only enqueues; it has no handlers and no listeners.
        return Core, (self.backend, self.defaults)


def check_function(function: Any) -> None:
    """Raise `InvalidOption` for what a worker cannot call as a handler."""
    if not (callable(function) and hasattr(function, "__qualname__")):
        raise InvalidOption(
            f"{function!r} is not a function: decorate a function, and give options by their names"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidOption(
            f"{function.__qualname__} is a generator function, and a call of it runs nothing:"
            " return a list, or enqueue a job for each value"
        )


def keep_loggers() -> None:
    """Take back that `logging.config` has disabled loggers of zq.

    By default it disables all loggers that exist already and that it does not name. The warnings of
    a worker are then lost, although nobody wanted that. Levels and handlers stay.
    """
    for name, logger in [*logging.root.manager.loggerDict.items()]:
        if name.partition(".")[0] == "zq" and isinstance(logger, logging.Logger):
            logger.disabled = False


class HasAddress(Protocol):
    """A server with an address, such as that of `zq.testing`."""

    @property
    def url(self) -> str: ...


class Elsewhere:
    """Points an app at another backend inside a ``with`` or ``async with`` block, and then back.

    The app's tasks and queues go with it. At the end of the block its connections are closed.
    """

    def __init__(self, core: Core, backend: Backend) -> None:
        self._core = core
        self._backend = backend
        self._before: list[Backend] = []

    def __enter__(self) -> Self:
        self._before.append(self._core.backend)
        self._core.backend = self._backend
        return self

    def __exit__(self, *_: object) -> None:
        self._core.backend = self._before.pop()
        run(self._backend.blocking.close())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self._core.backend = self._before.pop()
        await self._backend.close()
        await self._backend.blocking.close()
