"""Handlers in processes: one job at a time in each. A process is killed when time is up.

Arguments and results cross as JSON. The process finds the function by its module and name, so the
function must be importable: a task, or a function of a module.
"""

import asyncio
import contextlib
import importlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import msgspec

from zq.client.backend import Backend
from zq.client.errors import InvalidOption
from zq.client.formats import JSON
from zq.client.queue import Queue
from zq.client.running import Running, current
from zq.client.task import Task
from zq.client.values import Delivery, LeasedFailure
from zq.client.worker.execution import Execution
from zq.client.worker.handlers import (
    Handler,
    OnException,
    ProcessDied,
    failure_of,
    handler_of_queue,
    handler_of_task,
)

T = TypeVar("T")

_Name = tuple[str, ...]
"""The name of a function: its module, and its name there. With more, the function finds a task, and
is called with the rest."""

LOOKS = 200
LOOK_EVERY_S = 0.005
"""How often the exit code of a process that has died is looked for."""

PREPARING_S = 60.0
"""How long a process may take to start and import a function."""


class Failed(Exception):
    """A handler failed in another process, which made the report."""

    def __init__(self, failure: LeasedFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Process:
    """A place for one process. It starts when it is first needed, and is killed to end its job."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0
        self._child: BaseProcess | None = None
        self._known: set[_Name] = set()

    async def prepare(self, handler: Handler) -> None:
        """Start the process, and make it import the function. Raises `ProcessDied`."""
        name = _name(handler)
        if name in self._known:
            return
        try:
            async with asyncio.timeout(PREPARING_S), self._giving_up_with():
                await self._submit(_prepare, name)
        except TimeoutError:
            raise ProcessDied(
                f"the process has not imported {name[0]} within {PREPARING_S:g} s"
            ) from None
        self._known.add(name)

    async def run(self, execution: Execution) -> Any:
        """Return the result of the handler. Raises `Failed` or `ProcessDied`."""
        job = msgspec.json.encode(execution.running.delivery)
        async with self._giving_up_with():
            failure, result = await self._submit(_run, _name(execution.handler), job)
        if failure is not None:
            raise Failed(msgspec.json.decode(failure, type=LeasedFailure))
        return msgspec.json.decode(result)

    def close(self) -> None:
        """End the process. Its unfinished work is lost."""
        self.kill()

    @asynccontextmanager
    async def _giving_up_with(self) -> AsyncIterator[None]:
        """Kill the process if the block ends with an error."""
        try:
            yield
        except BrokenProcessPool:
            child = self._child
            self.forget()
            how = "" if child is None else await _end_of(child)
            raise ProcessDied(f"the process that ran the job has died{how}") from None
        except asyncio.CancelledError:
            self.kill()
            raise

    async def _submit(self, function: Callable[..., T], *args: Any) -> T:
        loop = asyncio.get_running_loop()
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=_leave_signals_to_the_worker
            )
            self._pid = await loop.run_in_executor(self._pool, os.getpid)
            (self._child,) = [each for each in active_children() if each.pid == self._pid]
        return await loop.run_in_executor(self._pool, function, *args)

    def kill(self) -> None:
        """Kill the process."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self.forget()

    def forget(self) -> None:
        """Use another process for the next job. This one is gone, and its number may be reused."""
        pool, self._pool, self._pid, self._known = self._pool, None, 0, set()
        self._child = None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


async def _end_of(child: BaseProcess) -> str:
    """How a process has ended, as far as that becomes known."""
    # The pool looks as well, in a thread of its own: only one of the two gets the answer at first.
    for _ in range(LOOKS):
        if (code := child.exitcode) is not None:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    if code is None or code >= 0:
        return "" if code is None else f" with exit code {code}"
    hint = ", which the kernel sends where memory runs out" if code == -signal.SIGKILL else ""
    return f" of {signal.Signals(-code).name}{hint}"


def _leave_signals_to_the_worker() -> None:
    # Ctrl-C reaches the whole process group, but the worker decides what happens to its jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _prepare(function: _Name) -> None:
    """In the process: import the function. An import error is reported when the function is
    called."""
    with contextlib.suppress(Exception):
        find(*function)


def _name(handler: Handler) -> _Name:
    return handler.found_by or (handler.function.__module__, handler.function.__qualname__)


def _run(function: _Name, job: bytes) -> tuple[bytes | None, bytes]:
    """In the process: find the function, call it, and encode its outcome as JSON."""
    delivery = msgspec.json.decode(job, type=Delivery)
    on_exception: OnException = {}
    try:
        handler, backend = find(*function)
        on_exception = handler.on_exception
        running = Running(delivery, delivery.payload, backend)
        token = current.set(running)
        try:
            args, kwargs = handler.arguments(running)
            result = handler.function(*args, **kwargs)
            # A coroutine function may be inside a decorator, which looks like an ordinary function.
            return None, JSON.encode(asyncio.run(result) if asyncio.iscoroutine(result) else result)
        finally:
            current.reset(token)
    except BaseException as error:  # SystemExit too: the process must live on for the next job
        return msgspec.json.encode(failure_of(error, delivery, on_exception)), b""


def find(module: str, qualname: str, *wanted: str) -> tuple[Handler, Backend]:
    """A task, or the handler of a queue, by the module and name of its function; and its server.

    With `wanted`, the function is called with it, and finds the task.
    """
    home = importlib.import_module(module)
    place: Any = home
    for name in qualname.split("."):
        place = getattr(place, name, None)
    if wanted:
        place = place(*wanted)
    if isinstance(place, Task):
        return handler_of_task(place), place.core.backend
    for queue in vars(home).values():
        known = queue.core.handlers.get(queue.name) if isinstance(queue, Queue) else None
        if known is not None and known.function is place:
            return handler_of_queue(known), queue.core.backend
    raise InvalidOption(
        f"{module}.{qualname} is neither a task nor the handler of a queue that its module has by"
        " this name: processes find functions by name, so write it as a function of the module"
    )
