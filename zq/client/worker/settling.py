"""The settlement of an execution: the server, the hook, listeners and the log get its outcome.

A line of the log names the task, the job, its queue and attempt, how long the job has waited and
how long the handler has run. Successes are logged at INFO and beginnings at DEBUG. They cost
nothing if the logger `zq.worker` is set to a higher level.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from zq.client.amounts import positive_ms
from zq.client.errors import InvalidOption, ZqError
from zq.client.events import Event
from zq.client.job_error import DETAILS, JobError
from zq.client.outcome import Outcome
from zq.client.running import EventName, GiveBack, Running, current, ends_task
from zq.client.task import HasTasks
from zq.client.values import MISSING, Delivery, LeasedFailure, Success
from zq.client.worker.acks import MOST_LATE, Acknowledger, report
from zq.client.worker.execution import Execution
from zq.client.worker.handlers import Timeout, failure_of, is_final
from zq.client.worker.holding import hand_back
from zq.client.worker.processes import Failed
from zq.model.job import Retention

log = logging.getLogger("zq.worker")


class JobContext(logging.Filter):
    """Adds `task` and `job_id` to the log records of a running handler, and drops none.

    They are fields of the lines that zq's formatters write. Formatters of the standard library find
    them as attributes, which are empty outside of handlers. Add it to handlers, not to loggers.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        job = current.get(None)
        record.task, record.job_id = ("", "") if job is None else (job.type, job.id)
        if job is not None and not record.name.startswith("zq."):
            fields = getattr(record, "fields", {})
            record.fields = {**fields, "task": job.type, "job_id": job.id}
        return True


def tell_of_jobs() -> None:
    """Add the current job to the lines of the log's handlers."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(JobContext())


class Journal:
    """Logs the executions of one worker."""

    def __init__(self) -> None:
        self._tells_ends = log.isEnabledFor(logging.INFO)
        self._tells_starts = log.isEnabledFor(logging.DEBUG)

    def started(self, execution: Execution) -> None:
        """Log that a handler begins."""
        if self._tells_starts:
            log.debug("started", extra={"fields": _fields(execution.running)})

    def completed(self, execution: Execution) -> None:
        """Log that a handler has succeeded."""
        if self._tells_ends:
            log.info("completed", extra={"fields": _fields(execution.running) | _times(execution)})

    def failed(self, execution: Execution, failure: LeasedFailure) -> None:
        """Log that an execution has failed, with the traceback that is stored with the job."""
        running = execution.running
        final = is_final(failure, running.delivery)
        fields = _times(execution)
        if failure.backtrace is not None:
            fields["traceback"] = failure.backtrace.partition(DETAILS)[0]
        log.log(
            logging.ERROR if final else logging.WARNING,
            "%s %s (%s) failed at attempt %d%s: %s: %s",
            *(running.type, running.id, running.queue, running.attempt),
            *(" for the last time" if final else "", failure.error_type, failure.message),
            extra={"fields": fields},
        )

    def unstored(self, job: Running[Any], failure: LeasedFailure) -> None:
        """Log that a job has failed after its handler had succeeded."""
        log.error(
            "%s %s (%s) failed for good after its handler had returned: %s",
            *(job.type, job.id, job.queue, failure.message),
        )


def _fields(job: Running[Any]) -> dict[str, object]:
    return {"task": job.type, "job": job.id, "queue": job.queue, "attempt": job.attempt}


def _times(execution: Execution) -> dict[str, object]:
    """How long the job was ready before its handler began, and how long that has run."""
    began, now = execution.started_at, time.time()
    if not began:
        return {}
    waited = max(began - execution.running.delivery.ready_at / 1000, 0.0)
    return {"waited": f"{waited:.3f}s", "ran": f"{now - began:.3f}s"}


AfterExecution = Callable[[Outcome], Awaitable[None] | None]


class Settler:
    """Settles executions for a worker."""

    def __init__(
        self,
        app: HasTasks,
        acks: Acknowledger,
        journal: Journal,
        worker_id: str,
        after: AfterExecution | None,
    ) -> None:
        """`after` is the hook that sees final outcomes before they are stored."""
        self.outcomes: list[Outcome] | None = None
        """A list that collects outcomes, if somebody wants them."""
        self._backend = app.backend
        self._events = app.core.events
        self._acks = acks
        self._journal = journal
        self._worker_id = worker_id
        self._after = after
        self._untold: OrderedDict[str, Outcome] = OrderedDict()
        self._telling: set[asyncio.Task[None]] = set()

    def at_once(self, execution: Execution) -> bool:
        """Settle a success that needs neither hook nor listeners. Return whether it was one."""
        if self._error(execution) is not None or self._is_watched(ok=True):
            return False
        self._journal.completed(execution)
        self._succeed(execution.running, execution.result, None)
        return True

    async def settle(self, execution: Execution, on_report: Callable[[Execution], None]) -> None:
        """Report the outcome to the server, the hook and the listeners.

        `on_report` is called when the hook has seen it. Until then the job must be held, and may
        come again over another stream.
        """
        running, result = execution.running, execution.result
        error = self._error(execution)
        if isinstance(error, GiveBack):
            on_report(execution)
            await self._give_back(running.delivery, error.delay_ms)
            return
        failure = None
        if error is not None:
            failure = _failure(error, execution)
            self._journal.failed(execution, failure)
        outcome = None
        if self._is_watched(failure is None):
            outcome = self._outcome(execution, failure, error)
            if self._after is not None and outcome.final:
                await self._call_after(self._after, outcome)
                result = outcome.result
                if failure is not None:
                    failure = _with(failure, outcome.error, running.delivery)
        on_report(execution)
        if failure is None:
            self._journal.completed(execution)
            self._succeed(running, result, outcome)
        elif await report(self._backend, running.delivery, failure, self.lost):
            await self._keep(running.id, outcome)
            if outcome is not None:
                await self._tell(outcome)

    async def _give_back(self, delivery: Delivery, delay_ms: int) -> None:
        try:
            await hand_back(self._backend, self._events, [delivery], delay_ms)
        except ZqError as fault:
            log.error("the job %s could not be given back: %s", delivery.id, fault)

    def stored(self, ids: Iterable[str]) -> None:
        """Tell of successes, now that the server has stored them."""
        if not self._untold:
            return
        for id in ids:
            outcome = self._untold.pop(id, None)
            if outcome is not None:
                task = asyncio.create_task(self._tell(outcome))
                self._telling.add(task)
                task.add_done_callback(self._telling.discard)

    async def told(self) -> None:
        """Wait until all that `stored` has begun to tell is told."""
        while self._telling:
            await asyncio.wait(self._telling)

    async def lost(self, id: str, event: EventName = "requeued") -> None:
        """Drop an outcome, since its delivery had ended before."""
        log.warning("the outcome of the job %s is dropped: its delivery has ended", id)
        if self._events.wanted(event):
            await self._events.emit(Event(event, id=id))

    async def unstored(self, delivery: Delivery, failure: LeasedFailure) -> None:
        """Tell that a job has failed although its handler has succeeded."""
        job: Running[Any] = Running(delivery, delivery.payload, self._backend)
        self._journal.unstored(job, failure)
        worker = self._worker_id
        error = JobError(job.attempt, failure.message, failure.error_type, worker=worker)
        outcome = self._untold.pop(job.id, None) or Outcome(job, worker_id=worker)
        outcome.result, outcome.error = None, error
        await self._tell(outcome)

    @staticmethod
    def _error(execution: Execution) -> BaseException | None:
        if execution.reason == "timeout":
            return Timeout(f"the execution took longer than {execution.seconds:g} s")
        return execution.error

    def _is_watched(self, ok: bool) -> bool:
        if self._after is not None or self.outcomes is not None:
            return True
        wanted = self._events.wanted
        return wanted("completed") if ok else wanted("failed") or wanted("failing")

    def _outcome(
        self, execution: Execution, failure: LeasedFailure | None, failed: BaseException | None
    ) -> Outcome:
        running = execution.running
        error = None
        if failure is not None:
            error = JobError(
                running.attempt,
                failure.message,
                failure.error_type,
                failure.backtrace,
                worker=self._worker_id,
            )
        return Outcome(
            job=running,
            result=None if error is not None else execution.result,
            error=error,
            final=failure is None or is_final(failure, running.delivery),
            worker_id=self._worker_id,
            started_at=execution.started_at,
            finished_at=time.time(),
            exception=failed,
        )

    async def _call_after(self, hook: AfterExecution, outcome: Outcome) -> None:
        """Call the hook. Its error is the worker's, not the job's, and its change of `ttl` is then
        undone."""
        try:
            waiting = hook(outcome)
            if waiting is not None:
                await waiting
            if outcome.ttl is not None:
                positive_ms("ttl", outcome.ttl)
        except BaseException as error:
            if ends_task(error):
                raise
            outcome.ttl = None
            await self._events.emit(Event("error", id=outcome.id, exception=error))

    def _succeed(self, running: Running[Any], result: Any, outcome: Outcome | None) -> None:
        delivery, retention = running.delivery, None
        if outcome is not None and outcome.ttl is not None:
            retention = Retention(completed_ms=positive_ms("ttl", outcome.ttl))
        if outcome is not None:
            # One that came too late may be stored after all, if the job is delivered here again.
            self._untold[delivery.id] = outcome
            if len(self._untold) > MOST_LATE:
                self._untold.popitem(last=False)
        self._acks.add(
            delivery, Success(delivery.id, delivery.lease, result, retention, running.spent or None)
        )

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
            outcome.job,
        )
        await self._events.emit(event)


def _failure(error: BaseException, execution: Execution) -> LeasedFailure:
    delivery = execution.running.delivery
    if isinstance(error, Failed):
        return msgspec.structs.replace(error.failure, lease=delivery.lease)
    return failure_of(error, delivery, execution.handler.on_exception)


def _with(failure: LeasedFailure, error: JobError | None, delivery: Delivery) -> LeasedFailure:
    """The report with the hook's changes to the error, and of the delivery after the hook."""
    failure = msgspec.structs.replace(failure, lease=delivery.lease)
    if error is None:
        return failure
    return msgspec.structs.replace(
        failure, message=error.message, error_type=error.error_type, backtrace=error.backtrace
    )
