"""Executes Django's tasks in zq's workers, with Django's signals and fresh connections."""

import inspect
from collections.abc import Callable
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections
from django.utils import timezone

from zq.client.app import App
from zq.client.errors import InvalidPayload
from zq.client.running import Discard, Kill, current_job
from zq.client.task import AsyncTask, SyncTask, Task
from zq.client.worker.tracebacks import traceback_of
from zq.contrib.django.backend import ZqBackend
from zq.contrib.django.framework import (
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from zq.contrib.django.results import moment_of, task_of
from zq.model.ids import timestamp_ms


def worker_app(backend: ZqBackend, worker_id: str) -> App:
    """An app for workers, which finds a task by the path that is the type of a job."""
    app = App(
        backend.options.get("url"),
        token=backend.options.get("token"),
        defaults=backend.job_options,
    )

    def find(path: str) -> Task[Any, Any] | None:
        task = task_of(path)
        if task is None:
            return None
        function = _function(backend, task, worker_id)
        kind = AsyncTask if inspect.iscoroutinefunction(function) else SyncTask
        return kind(app.core, function, path, task.queue_name, {})

    app.core.find = find
    return app


def _function(backend: ZqBackend, task: Any, worker_id: str) -> Callable[..., Any]:
    """The function that a worker calls for jobs of a task."""
    signature = inspect.signature(task.func)

    def run(*args: Any, **kwargs: Any) -> Any:
        close_old_connections()
        call = _Call(backend, task, worker_id, args, kwargs)
        try:
            call.begin()
            call.check(signature)
            return call.succeeded(task.func(*call.args, **kwargs))
        except BaseException as error:
            call.failed(error)
            raise
        finally:
            close_old_connections()

    async def run_async(*args: Any, **kwargs: Any) -> Any:
        # A thread of its own: its connections end with the job.
        async with ThreadSensitiveContext():
            call = _Call(backend, task, worker_id, args, kwargs)
            try:
                await sync_to_async(call.begin)()
                call.check(signature)
                value = await task.func(*call.args, **kwargs)
                return await sync_to_async(call.succeeded)(value)
            except BaseException as error:
                await sync_to_async(call.failed)(error)
                raise
            finally:
                await sync_to_async(connections.close_all)()

    function = run_async if inspect.iscoroutinefunction(task.func) else run
    for name in ("__module__", "__name__", "__qualname__"):
        setattr(function, name, getattr(task.func, name))
    return function


class _Call:
    """One execution of a task, told to Django's signals."""

    def __init__(
        self, backend: ZqBackend, task: Any, worker_id: str, args: Any, kwargs: dict[str, Any]
    ) -> None:
        self._sender = type(backend)
        self._job = job = current_job()
        now = timezone.now()
        self._result: Any = TaskResult(
            task=task.using(queue_name=job.queue, backend=backend.alias),
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
        context = (TaskContext(task_result=self._result),) if task.takes_context else ()
        self.args: tuple[Any, ...] = (*context, *args)

    def begin(self) -> None:
        """Tell that the task begins."""
        task_started.send(self._sender, task_result=self._result)

    def check(self, signature: inspect.Signature) -> None:
        """Raise `InvalidPayload` for arguments that the function does not take: no try helps."""
        try:
            signature.bind(*self.args, **self._result.kwargs)
        except TypeError as error:
            path = self._job.type
            raise InvalidPayload(f"the arguments do not fit {path}: {error}") from None

    def succeeded(self, value: Any) -> Any:
        """Tell that the task has succeeded. Return its value as it is stored."""
        stored = normalize_json(value)
        self._set("_return_value", stored)
        self._finish(TaskResultStatus.SUCCESSFUL)
        return stored

    def failed(self, error: BaseException) -> None:
        """Tell that the task has failed, if no other attempt follows."""
        kind = type(error)
        path = f"{kind.__module__}.{kind.__qualname__}"
        without = isinstance(error, InvalidPayload)
        said = f"{path}: {error}\n" if without else traceback_of(error)
        told = TaskError(exception_class_path=path, traceback=said)
        self._result.errors.append(told)
        last = self._job.max_attempts is not None and self._job.attempt >= self._job.max_attempts
        if last or isinstance(error, Discard | Kill | InvalidPayload):
            self._finish(TaskResultStatus.FAILED)

    def _finish(self, status: Any) -> None:
        self._set("finished_at", timezone.now())
        self._set("status", status)
        task_finished.send(self._sender, task_result=self._result)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self._result, name, value)  # results are frozen
