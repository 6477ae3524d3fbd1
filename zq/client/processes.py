"""Handlers in processes of their own: one job a process at a time, killed where time is up.

Arguments and results cross as JSON. The function is found again by its module and name, so it must
be importable: a task, or a function of a module.
"""

import asyncio
import importlib
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import msgspec

from zq.client.app import App
from zq.client.errors import InvalidOption
from zq.client.formats import JSON
from zq.client.running import Running, current
from zq.client.task import Task
from zq.client.values import Delivery, LeasedFailure
from zq.client.work import Handler, Registry, failure_of


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
            slot.kill()
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
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._pid:
            # The number is this process's as long as the pool has not collected it.
            os.kill(self._pid, signal.SIGKILL)
            self._pid = 0
        pool.shutdown(wait=False, cancel_futures=True)


def _leave_signals_to_the_worker() -> None:
    # Ctrl-C reaches the whole group; what becomes of a job is for the worker to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(function: tuple[str, str], job: bytes) -> tuple[bytes | None, bytes]:
    """In the process: find the function, call it, and put in JSON what comes of it."""
    delivery = msgspec.json.decode(job, type=Delivery)
    try:
        app, call = find(*function)
        handler = Registry(app).find(delivery)
        running = Running(delivery, delivery.payload, app.backend)
        token = current.set(running)
        try:
            args, kwargs = handler.arguments(running)
            return None, JSON.encode(call(*args, **kwargs))
        except Exception as error:
            failure = failure_of(error, delivery, handler.on_exception)
        finally:
            current.reset(token)
    except Exception as error:
        failure = failure_of(error, delivery, {})
    return msgspec.json.encode(failure), b""


def find(module: str, qualname: str) -> tuple[App, Callable[..., Any]]:
    """The app and the function of a task, or of a queue's handler, by module and name."""
    place: Any = importlib.import_module(module)
    holder = place
    for name in qualname.split("."):
        place = getattr(place, name)
    if isinstance(place, Task):
        return place.app, place.function
    for app in vars(holder).values():
        if isinstance(app, App) and any(
            queue.function is place for queue in app.message_queues.values()
        ):
            return app, place
    raise InvalidOption(
        f"{module}.{qualname} belongs to no app of its module: processes find functions by name"
    )
