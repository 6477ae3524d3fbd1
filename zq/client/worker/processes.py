"""Handlers in processes: one job at a time in each. A process is killed when time is up.

Arguments and results cross as JSON. The process finds the function by its module and name, so the
function must be importable: a task, or a function of a module. What its module says of the app
holds in the process: its functions for the start and the end, and its middleware.
"""

import asyncio
import contextlib
import ctypes
import importlib
import inspect
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import msgspec

from zq.client.core import Core
from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.formats import JSON, said_by
from zq.client.queue import Queue
from zq.client.running import GiveBack, Middleware, Running, around_all, call_all, current
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

PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when the thread ends that has started it."""

PREPARING_S = 60.0
"""How long a process may take to start and import a function."""

_spawn = get_context("spawn")


class Failed(Exception):
    """A handler failed in another process, which made the report."""

    def __init__(self, failure: LeasedFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Process:
    """A place for one process. It starts when it is first needed, and is killed to end its job.

    The process leads a group of its own, so what its job has started is killed with it. It ends
    with the worker, whatever ends that.
    """

    is_elsewhere = True

    def __init__(self, core: Core) -> None:
        """`core` is that of the worker's app."""
        self._core = core
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0
        self._child: BaseProcess | None = None
        self._begun = _spawn.RawValue(ctypes.c_bool)
        self._known: set[_Name] = set()

    async def prepare(self, handler: Handler) -> None:
        """Start the process, and make it import the function. Raises `ProcessDied`."""
        name = _name(handler)
        self._forget_dead()
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
        # A job that goes on after its stream broke has another lease then, which the process is not
        # told.
        delivery = msgspec.structs.replace(execution.running.delivery, lease=None)
        job = msgspec.json.encode(delivery)
        handler = execution.handler
        async with self._giving_up_with():
            count = len(self._core.middleware)
            ended = await self._submit(_run, _name(handler), job, count)
        if ended.released_ms is not None:
            raise GiveBack(ended.released_ms / 1000)
        if ended.failure is not None:
            raise Failed(msgspec.json.decode(ended.failure, type=LeasedFailure))
        execution.running.spent = ended.spent
        return msgspec.json.decode(ended.result)

    async def shut_down(self) -> None:
        """Let the process call the app's functions for that."""
        self._forget_dead()
        if self._known:
            with contextlib.suppress(ProcessDied):
                async with self._giving_up_with():
                    await self._submit(_shut_down)

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
        """Call a function in the process. Another takes the place of one that died before that."""
        loop = asyncio.get_running_loop()
        while True:
            pool = self._pool or await self._start()
            self._begun.value = False
            try:
                return await loop.run_in_executor(pool, _tell_and_call, function, *args)
            except BrokenProcessPool:
                if self._begun.value:
                    raise
                self.forget()

    async def _start(self) -> ProcessPoolExecutor:
        pool = self._pool = ProcessPoolExecutor(
            1, _spawn, initializer=_belong_to, initargs=(os.getpid(), self._begun)
        )
        self._pid = await asyncio.get_running_loop().run_in_executor(pool, os.getpid)
        # It may have died meanwhile.
        self._child = next((each for each in active_children() if each.pid == self._pid), None)
        return pool

    def _forget_dead(self) -> None:
        """Forget a process that has died while it had no job."""
        if self._child is not None and self._child.exitcode is not None:
            self.forget()

    def kill(self) -> None:
        """Kill the process, and those that it has started."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
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


# In the process


@dataclass
class _Own:
    """State that the process keeps from one job to the next."""

    runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    cores: list[Core] = field(default_factory=list)
    """The apps whose functions for the start have been called."""
    begun: Any = None
    """Memory of the worker, to tell it that a call has begun: a shared ``c_bool``."""


_own = _Own()


def _belong_to(worker: int, begun: Any) -> None:
    """Begin the process: it ends with the worker, and leads a group of its own."""
    _own.begun = begun
    os.setpgid(0, 0)
    # Ctrl-C reaches the worker, which decides what happens to its jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker:
        os._exit(1)
    threading.Thread(target=_end_with_worker, daemon=True).start()


def _end_with_worker() -> None:
    """Take along what the job has started. The kernel's signal at the worker's death does not."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.killpg(0, signal.SIGKILL)


def _tell_and_call(function: Callable[..., T], *args: Any) -> T:
    """Call a function, whose call counts from now on, even if the process dies."""
    _own.begun.value = True
    return function(*args)


def _prepare(function: _Name) -> None:
    """Import the function, and begin its app. An error is reported when the function is called."""
    with contextlib.suppress(Exception):
        _begin(find(*function)[1])


def _begin(core: Core) -> None:
    if not any(core is each for each in _own.cores):
        _own.runner.run(call_all(core.startup))
        _own.cores.append(core)


def _shut_down() -> None:
    for core in _own.cores:
        _own.runner.run(call_all(core.shutdown))


def _name(handler: Handler) -> _Name:
    return handler.found_by or (handler.function.__module__, handler.function.__qualname__)


@dataclass
class _Ended:
    """How a call has ended: its result or its failure as JSON, or after how long it comes again."""

    result: bytes = b""
    spent: dict[str, int] = field(default_factory=dict)
    failure: bytes | None = None
    released_ms: int | None = None


def _run(function: _Name, job: bytes, middleware: int) -> _Ended:
    """Find the function, call it within its middleware, and encode its outcome as JSON.

    The worker's app has so much `middleware`.
    """
    delivery = msgspec.json.decode(job, type=Delivery)
    on_exception: OnException = {}
    try:
        handler, core = find(*function)
        on_exception = handler.on_exception
        _begin(core)
        if len(core.middleware) != middleware:
            raise InvalidOption(
                f"the app of {function[0]} in this process has {len(core.middleware)} of"
                f" {middleware} middleware: put all of them where the module makes the app, or do"
                " without processes"
            )
        running = Running(delivery, delivery.payload, core.backend)
        token = current.set(running)
        try:
            result = _call(handler, core.middleware + handler.middleware, running)
            return _Ended(_written(result), running.spent)
        finally:
            current.reset(token)
    except GiveBack as release:
        return _Ended(released_ms=release.delay_ms)
    except BaseException as error:  # SystemExit too: the process must live on for the next job
        failure = failure_of(error, delivery, on_exception)
        return _Ended(failure=msgspec.json.encode(failure))


def _written(result: Any) -> bytes:
    try:
        return JSON.encode(result)
    except KeyboardInterrupt as error:  # of the code of the result: the process ignores the signal
        raise InvalidPayload(f"the value cannot be sent: {said_by(error)}") from error


def _call(handler: Handler, around: Sequence[Middleware], running: Running[Any]) -> Any:
    def call() -> Any:
        args, kwargs = handler.arguments(running)
        return handler.function(*args, **kwargs)

    async def awaited(result: Any) -> Any:
        # A coroutine function may be inside a decorator, which looks like an ordinary function.
        return await result if inspect.isawaitable(result) else result

    async def within() -> Any:
        # A thread, so that the function may block on others, has the context of the middleware.
        return await awaited(await asyncio.to_thread(call))

    if around:
        return _own.runner.run(around_all(around, running, within), context=copy_context())
    result = call()
    return _own.runner.run(awaited(result)) if inspect.isawaitable(result) else result


def find(module: str, qualname: str, *wanted: str) -> tuple[Handler, Core]:
    """A task, or the handler of a queue, by the module and name of its function; and its app.

    With `wanted`, the function is called with it, and finds the task.
    """
    home = importlib.import_module(module)
    place: Any = home
    for name in qualname.split("."):
        place = getattr(place, name, None)
    if wanted:
        place = place(*wanted)
    if isinstance(place, Task):
        return handler_of_task(place), place.core
    for queue in vars(home).values():
        known = queue.core.handlers.get(queue.name) if isinstance(queue, Queue) else None
        if known is not None and known.function is place:
            return handler_of_queue(known), queue.core
    raise InvalidOption(
        f"{module}.{qualname} is neither a task nor the handler of a queue that its module has by"
        " this name: processes find functions by name, so write it as a function of the module"
    )
