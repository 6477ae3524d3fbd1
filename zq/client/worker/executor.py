"""Executes deliveries, a bounded number at a time: calls each in its place, and settles it."""

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from zq.client.backend import Backend
from zq.client.running import EventName, Reason, Running, around_all, current
from zq.client.task import HasTasks
from zq.client.values import MISSING, Delivery
from zq.client.worker.continuing import go_on
from zq.client.worker.execution import Execution, RunawayWork
from zq.client.worker.handlers import Handler, timeout_of
from zq.client.worker.places import CallingPlace, Place, Places, Thread, calling
from zq.client.worker.processes import Process
from zq.client.worker.settling import Journal, Settler
from zq.client.worker.standstill import Deadlocks

log = logging.getLogger("zq.worker")

LEAST_RUNAWAYS = 10
"""A worker goes on with this many runaway executions, or with its concurrency if that is larger."""


@dataclass(frozen=True)
class Capacity:
    """Limits on what runs at a time: all executions, and ordinary functions in threads or
    processes."""

    concurrency: int
    threads: int
    processes: int


class Executor:
    """Runs deliveries. `running` has those whose outcomes the server is to get, by id.

    They are under way, or the hook sees their outcomes.
    """

    def __init__(
        self,
        app: HasTasks,
        settler: Settler,
        journal: Journal,
        capacity: Capacity,
        clean_up_s: float,
        *,
        worker_id: str,
        on_free: Callable[[], None],
        on_runaways: Callable[[], None],
    ) -> None:
        """`on_free` is called when another may begin, `on_runaways` when too many do not end."""
        self.running: dict[str, Execution] = {}
        self.finished = 0
        self.unfinished: list[Delivery] = []
        """Executions that were ended because the worker stops."""
        self._app = app
        self._backend: Backend = app.backend
        self._settler = settler
        self._journal = journal
        self._concurrency = capacity.concurrency
        self._clean_up_s = clean_up_s
        self._on_free = on_free
        self._runaway = RunawayWork(max(LEAST_RUNAWAYS, capacity.concurrency), on_runaways)
        places: list[Place] = [Process(app.core) for _ in range(capacity.processes)]
        self._places = Places(places or [_thread(n) for n in range(capacity.threads)])
        self._context = copy_context()
        self._under_way: set[Execution] = set()
        self._settling: set[asyncio.Task[None]] = set()
        self._deadlocks = Deadlocks(worker_id, self._under_way, lambda: not self.has_room)
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def stuck(self) -> int:
        """The number of abandoned threads and coroutines that still work and cannot be ended."""
        return len(self._runaway) + len(self._settling)

    @property
    def under_way(self) -> int:
        """The number of executions that have not ended."""
        return len(self._under_way)

    @property
    def has_room(self) -> bool:
        """True if another execution may begin."""
        return len(self._under_way) + len(self._settling) < self._concurrency

    @property
    def is_idle(self) -> bool:
        """True if no execution is under way, and everything is settled as far as possible."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Wait until `is_idle`."""
        await self._idle.wait()

    def begin(self, delivery: Delivery, handler: Handler) -> None:
        """Run one job to its settlement."""
        running: Running[Any] = Running(delivery, delivery.payload, self._backend)
        running.refuse_deadlock = self._deadlocks.refuse
        execution = Execution(
            running, handler, self._runaway, self._clean_up_s, self._context, self._on_over
        )
        execution.after = self.running.get(delivery.id)
        self.running[delivery.id] = execution
        self._under_way.add(execution)
        self._idle.clear()
        execution.begin(self._execute)

    def drop(self, id: str, lease: int | None, event: EventName = "requeued") -> None:
        """Stop a running job whose delivery has ended, and report only the event."""
        execution = self.running.get(id)
        if execution is None or execution.is_over:
            return
        if execution.running.delivery.lease == lease:
            execution.running.lost = event
            execution.end(_REASONS.get(event, "requeued"))

    def end_all(self, clean_up_s: float) -> None:
        """End all executions, since the worker stops. Jobs may clean up for this long."""
        for execution in list(self._under_way):
            execution.end("shutdown", clean_up_s)

    def close(self) -> None:
        """Close all places; work that still runs there is left behind."""
        for task in self._settling:
            task.cancel()
        self._places.close()

    # The call

    async def _execute(self, execution: Execution) -> None:
        current.set(execution.running)
        try:
            if execution.after is not None:
                await execution.after.ended()
                execution.after = None
            if execution.handler.is_async:
                await self._call(execution, None)
            else:
                await self._call_in_place(execution)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            # SystemExit and KeyboardInterrupt too: the handler has raised them. Signals come to the
            # worker by the event loop.
            execution.error = error

    async def _call_in_place(self, execution: Execution) -> None:
        """The handler's time begins once it has a thread or process that can run it at once."""
        place = await self._places.take()
        try:
            await place.prepare(execution.handler)
            await self._call(execution, place)
        finally:
            self._places.put(place)

    async def _call(self, execution: Execution, place: Place | None) -> None:
        handler, running = execution.handler, execution.running
        execution.started_at = time.time()
        self._journal.started(execution)
        execution.limit(timeout_of(handler, running.delivery))
        around = self._app.core.middleware + handler.middleware
        # A process calls them around the function there, where their context is that of the job.
        if place is not None and place.is_elsewhere:
            around = ()
        result = await around_all(around, running, partial(_innermost, execution, place))
        # Handlers may return although they were told to end. Only a stop wants the result then.
        if running.lost is None and execution.reason in (None, "shutdown"):
            execution.unlimit()
            await go_on(self._backend, running, result)
        execution.result = result

    async def shut_down(self, seconds: float) -> None:
        """Let processes call the app's functions for that."""
        await self._places.shut_down(seconds)

    # Outcomes

    def _on_over(self, execution: Execution) -> None:
        running = execution.running
        self._under_way.discard(execution)
        if running.lost is not None:
            self._forget(execution)
            self._settle(self._settler.lost(running.id, running.lost))
        elif execution.reason == "shutdown" and execution.result is MISSING:
            self._forget(execution)
            self.unfinished.append(running.delivery)
        else:
            self.finished += 1
            if self._settler.at_once(execution):
                self._forget(execution)
            else:
                self._settle(self._report(execution))
        self._let_go()

    async def _report(self, execution: Execution) -> None:
        try:
            await self._settler.settle(execution, self._forget)
        finally:
            self._forget(execution)  # a fault must not leave it held for ever

    def _forget(self, execution: Execution) -> None:
        """Its delivery has ended, or is about to."""
        if self.running.get(execution.running.id) is execution:
            del self.running[execution.running.id]

    def _settle(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._settling.add(task)
        task.add_done_callback(self._on_settled)

    def _on_settled(self, task: asyncio.Task[None]) -> None:
        self._settling.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("a job could not be settled: %r", fault, exc_info=fault)
        self._let_go()

    def _let_go(self) -> None:
        self._on_free()
        if not self._under_way and not self._settling:
            self._idle.set()


_REASONS: dict[EventName, Reason] = {"cancelled": "cancelled", "stalled": "stalled"}


def _thread(number: int) -> Place:
    caller = calling.get()
    return Thread(number) if caller is None else CallingPlace(caller)


async def _innermost(execution: Execution, place: Place | None) -> Any:
    if place is not None:
        result = await place.run(execution)
        # A coroutine function may be inside a decorator, which looks like an ordinary function.
        return await result if inspect.isawaitable(result) else result
    args, kwargs = execution.handler.arguments(execution.running)
    return await execution.handler.function(*args, **kwargs)
