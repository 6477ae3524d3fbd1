"""Handlers: finding the function for a job, calling it, and reporting its failure."""

import asyncio
import concurrent.futures
import inspect
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import StackSummary, TracebackException
from typing import Any

from zq.client.amounts import milliseconds
from zq.client.core import QueueHandler
from zq.client.errors import InvalidPayload
from zq.client.formats import JSON, said_by
from zq.client.job_error import DETAILS
from zq.client.options import Backoff, Options
from zq.client.payloads import Undecided, unpacked
from zq.client.running import Discard, Kill, Middleware, Retry, Running
from zq.client.task import HasTasks, Task
from zq.client.values import (
    Delivery,
    LeasedFailure,
)
from zq.model.job import MAX_TIME

log = logging.getLogger("zq.worker")

OnException = Mapping[type[Exception], Any]
Arguments = tuple[Any, dict[str, Any]]

MOST_MESSAGE = 4_096
"""The most characters of an exception's message; the rest is cut off."""
MOST_BACKTRACE = 16_384
MOST_DETAILS = 16_384


class Timeout(Exception):
    """An execution took longer than its limit."""


class ProcessDied(Exception):
    """The process that ran a job has ended: it crashed, or memory ran out."""


@dataclass(frozen=True)
class Handler:
    """A function, with the requirements of its jobs. `timeout` is in seconds."""

    function: Callable[..., Any]
    arguments: Callable[[Running[Any]], Arguments]
    is_async: bool
    timeout: float | None
    on_exception: OnException
    middleware: tuple[Middleware, ...] = ()
    knows: Callable[[Any], bool] = lambda _: True
    """True if the function has parameters for the arguments in a payload."""
    found_by: tuple[str, ...] = ()
    """How another process finds it, if not by its name: see `Core.finder`."""

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


def handler_of_task(task: Task[Any, Any]) -> Handler:
    """The payload is a call: see `zq.client.payloads.call_of`."""

    def arguments(job: Running[Any]) -> Arguments:
        if isinstance(job.payload, str):  # pushed to the queue, perhaps as bytes
            job.payload = unpacked(job.payload, job.delivery.content_type)
        return task.signature.arguments(job.payload)

    task.signature.types()  # an annotation that cannot be read is told now, not by each job
    finder = task.core.finder
    return replace(
        _handler(task.function, arguments, task.effective),
        knows=task.signature.is_known,
        found_by=(*finder, task.name) if finder else (),
    )


def handler_of_queue(queue: QueueHandler) -> Handler:
    """The payload is the first argument. A second parameter gets the job: see `Queue.handler`."""
    function, convert = queue.function, queue.convert
    if isinstance(convert, Undecided):
        convert = convert.decide()
    parameters = inspect.signature(function).parameters.values()
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, _EITHER)]
    wants_job = any(map(_is_for_job, positional[1:2]))

    def arguments(job: Running[Any]) -> Arguments:
        job.payload = unpacked(job.payload, job.delivery.content_type)
        if convert is not None:
            job.payload = convert(job.payload)
        return (job.payload, job) if wants_job else (job.payload,), {}

    return replace(_handler(function, arguments, queue.options), middleware=queue.middleware)


def _handler(
    function: Callable[..., Any], arguments: Callable[[Running[Any]], Arguments], options: Options
) -> Handler:
    timeout = options.get("timeout")
    return Handler(
        function,
        arguments,
        inspect.iscoroutinefunction(function),
        None if timeout is None else milliseconds("timeout", timeout) / 1000,
        options.get("on_exception", {}),
    )


def _is_for_job(parameter: inspect.Parameter) -> bool:
    # An annotation may be text that names what only type checkers import.
    return parameter.default is parameter.empty or "Running" in str(parameter.annotation)


_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Handlers:
    """The functions of an app, by the queues and types of their jobs."""

    def __init__(self, app: HasTasks) -> None:
        self._queues = {name: handler_of_queue(queue) for name, queue in app.core.handlers.items()}
        self._tasks = {name: handler_of_task(task) for name, task in app.tasks.items()}
        self.queues = sorted({task.queue for task in app.tasks.values()} | set(self._queues))
        """The queues for which there are functions."""
        self._find = app.core.find

    def find(self, delivery: Delivery) -> Handler | None:
        """The handler of a job. None if this worker does not know its task; another may."""
        known = self._queues.get(delivery.queue) or self._tasks.get(delivery.type)
        if known is None and self._find is not None:
            task = self._find(delivery.type)
            if task is not None:
                known = self._tasks[delivery.type] = handler_of_task(task)
        return known


def timeout_of(handler: Handler, delivery: Delivery) -> float | None:
    """The time limit of this execution in seconds. The job's own limit overrides the function's."""
    if delivery.meta is not None and "timeout_ms" in delivery.meta:
        return float(delivery.meta["timeout_ms"]) / 1000
    return handler.timeout


def failure_of(
    error: BaseException, delivery: Delivery, on_exception: OnException
) -> LeasedFailure:
    """The report of a failed execution. Without `retry_at` or `kill` the server decides.

    The result of an exception's method `to_dict` becomes `JobError.details`.
    """
    kill, delay = _fate(error, delivery.attempts + 1, on_exception)
    # The server applies the limit. A `retry_at` would override it.
    last = delivery.retry_limit is not None and delivery.attempts >= delivery.retry_limit
    backtrace, details = _backtrace(error), _details(error)
    if details is not None:
        backtrace = f"{backtrace or ''}{DETAILS}{details}"
    return LeasedFailure(
        message=_words(error),
        error_type=type(error).__name__,
        backtrace=backtrace,
        retry_at=None if delay is None or last or kill else _moment_in(delay),
        kill=True if kill else None,
        lease=delivery.lease,
    )


def is_final(failure: LeasedFailure, delivery: Delivery) -> bool:
    """True if the job is dead after this failure, as far as the worker knows."""
    if failure.kill:
        return True
    limit = delivery.retry_limit
    return failure.retry_at is None and limit is not None and delivery.attempts >= limit


def _fate(
    error: BaseException, attempts: int, on_exception: OnException
) -> tuple[bool, float | None]:
    """True if the job dies, and the seconds until its next try (None: the server decides)."""
    if isinstance(error, Retry):
        return False, error.delay
    if isinstance(error, Discard | Kill | InvalidPayload):
        return True, None
    for kind in type(error).__mro__:
        if kind in on_exception:
            then = on_exception[kind]
            if then is None:
                return True, None
            if isinstance(then, Backoff):
                return False, delay_of(then, attempts)
            return False, milliseconds("on_exception", then) / 1000
    return False, None


def delay_of(backoff: Backoff, attempts: int) -> float:
    """The delay of the next attempt in seconds, by the formula of `Backoff`."""
    wire = backoff.wire()
    jitter = random.random() * wire.jitter_ms * attempts
    return min(math.pow(attempts, wire.exponent), 1e9) + (wire.base_ms + jitter) / 1000


def _moment_in(delay: float) -> int:
    return min(round((time.time() + delay) * 1000), MAX_TIME)


def _words(error: BaseException) -> str:
    """The message of any exception, as text that can be sent."""
    return said_by(error)[:MOST_MESSAGE]


def _sendable(text: str) -> str:
    """Text without the bytes in file names, for example, that are not characters."""
    return text.encode(errors="replace").decode()


def _backtrace(error: BaseException) -> str | None:
    if isinstance(error, Timeout | ProcessDied | InvalidPayload):
        return None
    return _sendable(traceback_of(error)[-MOST_BACKTRACE:])


def _details(error: BaseException) -> str | None:
    """The exception's own details, as JSON; None if it has none that can be sent."""
    try:
        to_dict = getattr(error, "to_dict", None)
        if to_dict is None:
            return None
        text = JSON.encode(to_dict()).decode()
    except BaseException as fault:
        log.error(
            "to_dict() of %s failed, so the failure has no details: %s",
            *(type(error).__name__, said_by(fault)),
        )
        return None
    if len(text) > MOST_DETAILS:
        log.error("the details of %s are too long, and are not stored", type(error).__name__)
        return None
    return text


_OURS = f"{Path(__file__).parents[2]}/"
_MACHINERY = (
    *(f"{package.__path__[0]}/" for package in (asyncio, concurrent.futures)),
    threading.__file__,
)
"""The modules that run handlers."""


def traceback_of(error: BaseException) -> str:
    """The traceback of an error and of its causes, without zq's own frames.

    An error that comes from zq alone keeps all of its frames.
    """
    told = TracebackException.from_exception(error)
    _trim(told, set())
    return "".join(told.format())


def _trim(told: TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    _keep(told.stack)
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _trim(other, seen)


def _keep(stack: StackSummary) -> None:
    first = 0
    for index, frame in enumerate(stack):
        if frame.filename.startswith(_OURS):
            first = index + 1
        elif not frame.filename.startswith(_MACHINERY):
            break
    kept = [frame for frame in stack[first:] if not frame.filename.startswith(_OURS)]
    if kept:
        stack[:] = kept
