"""Handlers in processes of their own: one job a process at a time, killed where time is up.

Arguments and results cross as JSON. The function is found again by its module and name, so it must
be importable: a task, or a function of a module.
"""

import asyncio
import contextlib
import importlib
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import msgspec

from zq.client.backend import Backend
from zq.client.errors import InvalidOption
from zq.client.formats import JSON
from zq.client.queue import Queue
from zq.client.running import Running, current
from zq.client.task import Task
from zq.client.values import Delivery, LeasedFailure
from zq.client.work import (
    Handler,
    OnException,
    failure_of,
    handler_of_queue,
    handler_of_task,
)


class ProcessDied(Exception):
    """The process that ran a job has ended, by a crash or for lack of memory."""


class Failed(Exception):
    """A handler failed in another process; the report comes from there."""

    def __init__(self, failure: LeasedFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Processes:
    """So many processes, each started when it is first needed."""

    def __init__(self, count: int) -> None:
        self._free: asyncio.LifoQueue[_Slot] = asyncio.LifoQueue()
        self._slots = [_Slot() for _ in range(count)]
        for slot in self._slots:
            self._free.put_nowait(slot)

    async def call(self, handler: Handler, delivery: Delivery) -> Any:
        """The result of a job's function. Raises `Failed` or `ProcessDied`.

        Where this is cancelled, the process is killed.
        """
        function = (handler.function.__module__, handler.function.__qualname__)
        job = msgspec.json.encode(delivery)
        slot = await self._free.get()
        try:
            failure, result = await slot.run(function, job)
        except BrokenProcessPool:
            slot.forget()
            raise ProcessDied("the process that ran the job has died") from None
        except asyncio.CancelledError:
            slot.kill()
            raise
        finally:
            self._free.put_nowait(slot)
        if failure is not None:
            raise Failed(msgspec.json.decode(failure, type=LeasedFailure))
        return msgspec.json.decode(result)

    def close(self) -> None:
        """End the processes; what they still do is lost."""
        for slot in self._slots:
            slot.kill()


class _Slot:
    """A place for one process."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0

    async def run(self, function: tuple[str, str], job: bytes) -> tuple[bytes | None, bytes]:
        """(the failure, the result) of a job, as JSON."""
        loop = asyncio.get_running_loop()
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=_leave_signals_to_the_worker
            )
            self._pid = await loop.run_in_executor(self._pool, os.getpid)
        return await loop.run_in_executor(self._pool, _run, function, job)

    def kill(self) -> None:
        """End the process, whatever it does."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self.forget()

    def forget(self) -> None:
        """Let the next job have another process. This one is gone, and its number may be too."""
        pool, self._pool, self._pid = self._pool, None, 0
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _leave_signals_to_the_worker() -> None:
    # Ctrl-C reaches the whole group; what becomes of a job is for the worker to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(function: tuple[str, str], job: bytes) -> tuple[bytes | None, bytes]:
    """In the process: find the function, call it, and put in JSON what comes of it."""
    delivery = msgspec.json.decode(job, type=Delivery)
    on_exception: OnException = {}
    try:
        handler, backend = find(*function)
        on_exception = handler.on_exception
        running = Running(delivery, delivery.payload, backend)
        token = current.set(running)
        try:
            args, kwargs = handler.arguments(running)
            return None, JSON.encode(handler.function(*args, **kwargs))
        finally:
            current.reset(token)
    except Exception as error:
        return msgspec.json.encode(failure_of(error, delivery, on_exception)), b""


def find(module: str, qualname: str) -> tuple[Handler, Backend]:
    """A task, or the handler of a queue, by the module and name of its function, and its server."""
    home = importlib.import_module(module)
    place: Any = home
    for name in qualname.split("."):
        place = getattr(place, name)
    if isinstance(place, Task):
        return handler_of_task(place), place.core.backend
    for queue in vars(home).values():
        known = queue.core.handlers.get(queue.name) if isinstance(queue, Queue) else None
        if known is not None and known.function is place:
            return handler_of_queue(known), queue.core.backend
    raise InvalidOption(
        f"{module}.{qualname} is no task, and no handler of a queue of its module: processes find"
        " functions by name"
    )
