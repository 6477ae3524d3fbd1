"""Executes Django's tasks in zq's workers, with Django's signals and connections."""

import inspect
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.apps import apps
from django.db import connections
from django.utils import timezone
from django.utils.module_loading import import_string

from zq.client.app import App
from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.events import Event
from zq.client.options import Options
from zq.client.payloads import call_of
from zq.client.running import Running, current_job
from zq.client.task import AsyncTask, SyncTask, Task
from zq.client.values import MISSING
from zq.contrib.django.backend import ZqBackend, priority_of
from zq.contrib.django.framework import (
    TaskContext,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from zq.contrib.django.results import as_stored, error_of, moment_of, task_of
from zq.model.ids import timestamp_ms


def worker_app(backend: ZqBackend, worker_id: str) -> App:
    """An app for workers, which finds a task by the path that is the type of a job.

    What ``OPTIONS`` says of workers is done: schedules are registered, and `setup` is called.
    Raises `InvalidOption`.
    """
    options = backend.options
    app = App(
        options.get("url"),
        token=options.get("token"),
        defaults=backend.job_options,
        cron_group=f"django-{backend.alias}" if "periodic" in options else None,
        backend=backend.app.backend if backend.in_memory else None,
    )
    app.core.find = lambda path: _task(app, backend, path, worker_id)
    app.core.finder = (__name__, task_in_process.__name__, backend.alias, worker_id)
    _tell_signals(app, backend, worker_id)
    for path, said in options.get("periodic", {}).items():
        expression, zone = (said, None) if isinstance(said, str) else said
        task: Any = _task(app, backend, path, worker_id)
        if task is None:
            raise InvalidOption(f"OPTIONS['periodic'] names {path!r}, which is no task")
        app.periodic(expression, tz=zone)(task)
    if "setup" in options:
        import_string(options["setup"])(app)
    return app


def task_in_process(alias: str, worker_id: str, path: str) -> Task[Any, Any] | None:
    """The task at a path, in a process that a worker has started."""
    if not apps.ready:
        django.setup()
    backend = task_backends[alias]
    return _task(_app_in_process(alias, worker_id), backend, path, worker_id)


@cache
def _app_in_process(alias: str, worker_id: str) -> App:
    return worker_app(task_backends[alias], worker_id)


def _task(app: App, backend: ZqBackend, path: str, worker_id: str) -> Task[Any, Any] | None:
    task = task_of(path)
    if task is None:
        return None
    function = _function(backend, task, worker_id)
    kind = AsyncTask if inspect.iscoroutinefunction(function) else SyncTask
    # A worker needs no fair key, and its function has other parameters than the task.
    own: Options = {"priority": priority_of(task), "fair_key": None}
    return kind(app.core, function, path, task.queue_name, own)


def _function(backend: ZqBackend, task: Any, worker_id: str) -> Callable[..., Any]:
    """The function that a worker calls for jobs of a task."""
    signature = inspect.signature(task.func)

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if task.takes_context:
            args = (
                TaskContext(task_result=_result(backend, task, current_job(), worker_id)),
                *args,
            )
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            message = f"the arguments do not fit {task.module_path}: {error}"
            raise InvalidPayload(message) from None
        return task.func(*args, **kwargs)

    def run(*args: Any, **kwargs: Any) -> Any:
        _renew_connections()
        try:
            return normalize_json(call(args, kwargs))
        finally:
            _renew_connections()

    async def run_async(*args: Any, **kwargs: Any) -> Any:
        # A thread of its own: its connections end with the job.
        async with ThreadSensitiveContext():
            try:
                return normalize_json(await call(args, kwargs))
            finally:
                await sync_to_async(_close_connections)()

    function = run_async if inspect.iscoroutinefunction(task.func) else run
    for name in ("__module__", "__name__", "__qualname__"):
        setattr(function, name, getattr(task.func, name))
    return function


def _own_connections() -> list[Any]:
    """The connections of this thread, but for one in a transaction: that is a test's."""
    return [each for each in connections.all(initialized_only=True) if not each.in_atomic_block]


def _renew_connections() -> None:
    """Close the connections of this thread that are broken, or too old."""
    for connection in _own_connections():
        connection.close_if_unusable_or_obsolete()


def _close_connections() -> None:
    """Close the connections of this thread."""
    for connection in _own_connections():
        connection.close()


# Signals


def _tell_signals(app: App, backend: ZqBackend, worker_id: str) -> None:
    """Send Django's signals: of the start of each attempt, and of the end once it is stored.

    They are sent by the worker, whatever the function does, and in whatever place it runs. An error
    of a receiver is logged by Django, and has no effect on the job.
    """
    sender = type(backend)

    async def starting(job: Running[Any], go_on: Callable[[], Awaitable[Any]]) -> Any:
        if task_started.has_listeners(sender) and (task := task_of(job.type)) is not None:
            await _send(task_started, sender, _result(backend, task, job, worker_id))
        return await go_on()

    async def finished(event: Event) -> None:
        job = event.job
        if job is None or not task_finished.has_listeners(sender):
            return
        task = task_of(job.type)
        if task is None:
            return
        result = _result(backend, task, job, worker_id)
        ended = {"finished_at": timezone.now(), "status": TaskResultStatus.SUCCESSFUL}
        if event.error is not None:
            ended["status"] = TaskResultStatus.FAILED
            result.errors.append(error_of(event.error))
        elif event.result is not MISSING:
            ended["_return_value"] = event.result
        for name, value in ended.items():
            object.__setattr__(result, name, value)  # results are frozen
        await _send(task_finished, sender, result, event.exception)

    app.middleware = (starting, *app.middleware)
    app.on("completed")(finished)
    app.on("failed")(finished)


async def _send(signal: Any, sender: type, result: Any, error: BaseException | None = None) -> None:
    """Send a signal from a thread in which receivers may use the database.

    They find the error of the task as the one that is handled, as Django's own receivers expect.
    """

    def send() -> None:
        _renew_connections()
        try:
            if error is not None:
                raise error
        except BaseException:
            signal.send_robust(sender, task_result=result)
        else:
            signal.send_robust(sender, task_result=result)
        finally:
            _close_connections()

    async with ThreadSensitiveContext():
        await sync_to_async(send)()


def _result(backend: ZqBackend, task: Any, job: Running[Any], worker_id: str) -> Any:
    """The result of a task that runs."""
    now = timezone.now()
    try:
        args, kwargs = call_of(job.delivery.payload)
    except InvalidPayload:  # a job of another program, which is no call
        args, kwargs = [], {}
    return TaskResult(
        task=as_stored(task, queue_name=job.queue, backend=backend.alias),
        id=job.key or job.id,
        status=TaskResultStatus.RUNNING,
        enqueued_at=moment_of(timestamp_ms(job.id)),
        started_at=now,
        last_attempted_at=now,
        finished_at=None,
        args=list(args),
        kwargs=kwargs,
        backend=backend.alias,
        errors=[],
        worker_ids=[""] * (job.attempt - 1) + [worker_id],
    )
