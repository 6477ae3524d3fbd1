"""Executing one delivery: calling its function where it belongs, and settling what comes of it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from zq.client.acks import Acknowledger, report
from zq.client.app import App
from zq.client.backend import Backend
from zq.client.errors import InvalidOption, ZqError
from zq.client.events import Event, EventName
from zq.client.options import positive_ms
from zq.client.outcome import Outcome
from zq.client.processes import Failed, Processes
from zq.client.running import Running, current
from zq.client.values import MISSING, Delivery, JobError, LeasedFailure, Success
from zq.client.work import Handler, Registry, Timeout, failure_of, is_final, timeout_of
from zq.model.job import Retention

log = logging.getLogger("zq.worker")

AfterExecution = Callable[[Outcome], Awaitable[None] | None]


class Executor:
    """Runs deliveries of an app's jobs. `running` has those under way, by id."""

    def __init__(
        self,
        app: App,
        registry: Registry,
        acks: Acknowledger,
        *,
        threads: int,
        processes: int,
        worker_id: str,
        after_execution: AfterExecution | None,
    ) -> None:
        self.running: dict[str, tuple[Running[Any], asyncio.Timeout]] = {}
        self.finished = 0
        self.outcomes: list[Outcome] | None = None
        """Where outcomes are to be kept, if they are."""
        self._app = app
        self._backend: Backend = app.backend
        self._registry = registry
        self._acks = acks
        self._worker_id = worker_id
        self._after = after_execution
        self._events = app.core.events
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="zq-job")
        self._processes = Processes(processes) if processes else None
        self._loose: set[Future[Any]] = set()

    @property
    def stuck(self) -> int:
        """How many threads are at work for nobody."""
        return sum(not work.done() for work in self._loose)

    async def execute(self, delivery: Delivery) -> None:
        """Run one job to its settlement. Where this is cancelled the job stays unsettled."""
        running: Running[Any] = Running(delivery, delivery.payload, self._backend)
        token = current.set(running)
        failed: BaseException | None = None
        result: Any = None
        handler: Handler | None = None
        started = time.time()
        limit = asyncio.timeout(None)
        try:
            handler = self._registry.find(delivery)
            async with limit:
                self.running[delivery.id] = running, limit
                seconds = timeout_of(handler, delivery)
                if seconds is not None:
                    limit.reschedule(asyncio.get_running_loop().time() + seconds)
                result = await self._around(handler, running)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failed = error
        except (Exception, SystemExit) as error:
            failed = Timeout("the time is up") if limit.expired() else error
        finally:
            current.reset(token)
            running.end()
            self.running.pop(delivery.id, None)
        if running.lost is not None:
            await self.lost(delivery.id, running.lost)
            return
        await self._settle(running, handler, result, failed, started)
        self.finished += 1

    def drop(self, id: str, lease: int | None, event: EventName = "requeued") -> None:
        """The delivery of a running job has ended: stop it, and report nothing but the event."""
        if id in self.running:
            running, limit = self.running[id]
            if running.delivery.lease != lease:
                return
            running.lost = event
            running.end()
            limit.reschedule(asyncio.get_running_loop().time())

    async def lost(self, id: str, event: EventName = "requeued") -> None:
        """Say that an execution was in vain: its delivery had ended before."""
        log.warning("what came of %s is dropped: its delivery has ended", id)
        if self._events.wanted(event):
            await self._events.emit(Event(event, id=id))

    def close(self) -> None:
        """Leave threads and processes behind."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._processes is not None:
            self._processes.close()

    # The call

    async def _around(self, handler: Handler, running: Running[Any]) -> Any:
        around = (*self._app.middleware, *handler.middleware)
        if not around:
            return await self._call(handler, running)

        async def innermost() -> Any:
            return await self._call(handler, running)

        call_next: Callable[[], Awaitable[Any]] = innermost
        for middleware in reversed(around):
            call_next = partial(middleware, running, call_next)
        return await call_next()

    async def _call(self, handler: Handler, running: Running[Any]) -> Any:
        if not handler.is_async and self._processes is not None:
            return await self._processes.call(handler, running.delivery)
        args, kwargs = handler.arguments(running)
        if handler.is_async:
            return await handler.function(*args, **kwargs)
        context = copy_context()
        return await self._in_thread(running, context.run, handler.function, *args, **kwargs)

    async def _in_thread(self, running: Running[Any], *call: Any, **kwargs: Any) -> Any:
        function, *args = call
        work: Future[Any] = self._threads.submit(function, *args, **kwargs)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            # A thread cannot be stopped: tell it, and let its slot be free when it ends.
            running.end()
            self._loose.add(work)
            work.add_done_callback(self._loose.discard)
            running.thread = work
            raise

    # What comes of it

    async def _settle(
        self,
        running: Running[Any],
        handler: Handler | None,
        result: Any,
        failed: BaseException | None,
        started: float,
    ) -> None:
        failure = None if failed is None else _failure(failed, running.delivery, handler)
        if failure is not None:
            _log(running, failure)
        outcome = None
        if self._is_watched(failure is None):
            outcome = self._outcome(running, result, failure, failed, started)
            if self._after is not None and outcome.final:
                await self._call_after(self._after, outcome)
                result = outcome.result
                if failure is not None and outcome.error is not None:
                    failure = _with(failure, outcome.error)
        if failure is None:
            self._succeed(running.delivery, result, outcome)
        elif await report(self._backend, running.id, failure, self.lost):
            await self._keep(running.id, outcome)
        if outcome is not None:
            await self._tell(outcome)
        if running.thread is not None:
            await asyncio.wait([asyncio.wrap_future(running.thread)])

    def _is_watched(self, ok: bool) -> bool:
        if self._after is not None or self.outcomes is not None:
            return True
        wanted = self._events.wanted
        return wanted("completed") if ok else wanted("failed") or wanted("failing")

    def _outcome(
        self,
        running: Running[Any],
        result: Any,
        failure: LeasedFailure | None,
        failed: BaseException | None,
        started: float,
    ) -> Outcome:
        error = None
        if failure is not None:
            error = JobError(
                running.attempt, failure.message, failure.error_type, failure.backtrace
            )
        return Outcome(
            job=running,
            result=result,
            error=error,
            final=failure is None or is_final(failure, running.delivery),
            worker_id=self._worker_id,
            started_at=started,
            finished_at=time.time(),
            exception=failed,
        )

    async def _call_after(self, hook: AfterExecution, outcome: Outcome) -> None:
        """The hook's trouble is the worker's, not the job's: what it made of the time is undone."""
        try:
            waiting = hook(outcome)
            if waiting is not None:
                await waiting
            if outcome.ttl is not None:
                positive_ms("ttl", outcome.ttl)
        except Exception as error:
            outcome.ttl = None
            await self._events.emit(Event("error", id=outcome.id, exception=error))

    def _succeed(self, delivery: Delivery, result: Any, outcome: Outcome | None) -> None:
        retention = None
        if outcome is not None and outcome.ttl is not None:
            retention = Retention(completed_ms=positive_ms("ttl", outcome.ttl))
        self._acks.add(delivery, Success(delivery.id, delivery.lease, result, retention))

    async def _keep(self, id: str, outcome: Outcome | None) -> None:
        """Keep the error for as long as the hook says."""
        if outcome is None or outcome.ttl is None or not outcome.final:
            return
        try:
            await self._backend.retain(id, dead_ms=positive_ms("ttl", outcome.ttl))
        except (ZqError, InvalidOption) as error:
            await self._events.emit(Event("error", id=id, exception=error))

    async def _tell(self, outcome: Outcome) -> None:
        if self.outcomes is not None:
            self.outcomes.append(outcome)
        name = {"completed": "completed", "dead": "failed", "failing": "failing"}[outcome.status]
        event = Event(
            name,  # type: ignore[arg-type]
            outcome.job.queue,
            outcome.id,
            outcome.job.key,
            outcome.job.attempt,
            outcome.result if outcome.ok else MISSING,
            outcome.error,
            outcome.exception,
        )
        await self._events.emit(event)


def _failure(error: BaseException, delivery: Delivery, handler: Handler | None) -> LeasedFailure:
    if isinstance(error, Failed):
        return error.failure
    return failure_of(error, delivery, {} if handler is None else handler.on_exception)


def _log(job: Running[Any], failure: LeasedFailure) -> None:
    """Say what has failed; its traceback is stored with the job."""
    final = is_final(failure, job.delivery)
    log.log(
        logging.ERROR if final else logging.WARNING,
        "%s %s (%s) has failed at attempt %d%s: %s: %s",
        *(job.type, job.id, job.queue, job.attempt, " for good" if final else ""),
        *(failure.error_type, failure.message),
    )


def _with(failure: LeasedFailure, error: JobError) -> LeasedFailure:
    """The report with what a hook has made of the error."""
    return LeasedFailure(
        error.message,
        error.error_type,
        error.backtrace,
        failure.retry_at,
        failure.kill,
        failure.lease,
    )
