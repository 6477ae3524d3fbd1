"""The backend: Django's tasks become jobs of zq, at once or with the caller's transaction."""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any
from uuid import uuid4

from django.core import checks
from django.db import connections
from django.utils import timezone

from zq.client.app import App
from zq.client.backend import run
from zq.client.errors import JobNotFound, Unavailable
from zq.client.options import DEFAULTS, Form, Options, merge
from zq.client.values import StoredJob, Submission
from zq.contrib.django import outbox
from zq.contrib.django.checks import settings_messages
from zq.contrib.django.framework import (
    BaseTaskBackend,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)
from zq.contrib.django.results import as_stored, moment_of, result_of, task_of
from zq.model.ids import LENGTH
from zq.model.job import DEFAULT_PRIORITY

MOST_PRIORITY = 100
PRIORITY_STEP = 100
"""Django's priorities are from -100 to 100, and 100 is the most urgent. zq's are from 0, the most
urgent, to 65535. The steps leave room for jobs of other programs between and beyond them."""


def priority_of(task: Any) -> int:
    """The priority of the jobs of a task."""
    return DEFAULT_PRIORITY - PRIORITY_STEP * int(task.priority)


@cache
def _app_at(url: str | None, token: str | None) -> App:
    # Django makes a backend for each thread. They share their connections.
    return App(url, token=token)


class ZqBackend(BaseTaskBackend):
    """Stores tasks as jobs. The type of a job is the path of its function.

    ``OPTIONS`` may have `url` and `token`, by default those of ZQ_URL and ZQ_TOKEN; `job`, options
    of jobs as in `zq.Options`; `database`, the alias of the database with the outbox; `periodic`,
    cron expressions by the paths of tasks; and `setup`, the path of a function that workers call
    with their app. With ``"ENQUEUE_ON_COMMIT": True`` a task is a row of the outbox until its
    transaction commits.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        self.on_commit = bool(params.get("ENQUEUE_ON_COMMIT", False))
        self.database: str = self.options.get("database", "default")
        self.job_options: Options = self.options.get("job", {})

    @property
    def app(self) -> App:
        """The app whose connections the backend uses."""
        return _app_at(self.options.get("url"), self.options.get("token"))

    @property
    def in_memory(self) -> bool:
        """True if the queue is in the memory of this process, as in tests."""
        home = getattr(self.app.backend, "home", None)
        return home is not None and home.is_in_memory

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Store a job for a call of the task."""
        self.validate_task(task)
        result: Any = TaskResult(
            task=task,
            id=uuid4().hex,
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        job = self.job(task, result.id, result.args, result.kwargs)
        if self.on_commit:
            outbox.write(connections[self.database], job)
        else:
            (stored,) = run(self.app.backend.blocking.enqueue([job]))
            # Whoever looks for the result later finds the server's time.
            object.__setattr__(result, "enqueued_at", moment_of(stored.created_at))
        task_enqueued.send(type(self), task_result=result)
        return result

    def job(self, task: Any, id: str, args: list[Any], kwargs: dict[str, Any]) -> Submission:
        """The job for a call, in the form in which it is sent."""
        own: Options = {"priority": priority_of(task)}
        if task.run_after is not None:
            aware = timezone.is_aware(task.run_after)
            moment = task.run_after if aware else timezone.make_aware(task.run_after)
            own["run_at"] = moment
            own["meta"] = {**self.job_options.get("meta", {}), "run_after": moment.isoformat()}
        options = merge(DEFAULTS, self.job_options, own)
        # Its arguments are those of a payload, which has no context.
        function = partial(task.func, None) if task.takes_context else task.func
        form = Form(task.queue_name, task.module_path, options, function=function)
        return form.submission({"args": args, "kwargs": kwargs}, key=id)

    def get_result(self, result_id: str) -> Any:
        """The result of a task, whichever process has enqueued it.

        Raises `TaskResultDoesNotExist` if nothing of it is kept.
        """
        job = None
        try:
            job = self._stored(result_id)
        except Unavailable:
            # What no relay has moved yet is known without the server.
            job = self._in_outbox(result_id)
            if job is None:
                raise
        # A relay may move the row to the server between the two looks.
        job = job or self._in_outbox(result_id) or self._stored(result_id)
        job = job or self._without_key(result_id)
        if job is None:
            raise TaskResultDoesNotExist(result_id)
        return self._result(result_id, job)

    def _result(self, id: str, job: StoredJob) -> Any:
        task = task_of(job.type)
        if task is None:
            raise TaskResultDoesNotExist(f"{id}: there is no task {job.type}")
        errors = run(self.app.backend.blocking.errors(job.id)) if job.attempts else []
        priority = (DEFAULT_PRIORITY - job.priority) // PRIORITY_STEP
        task = as_stored(
            task,
            priority=min(max(priority, -MOST_PRIORITY), MOST_PRIORITY),
            queue_name=job.queue,
            backend=self.alias,
        )
        return result_of(task, id, job, errors)

    def _stored(self, id: str) -> StoredJob | None:
        try:
            return run(self.app.backend.blocking.by_key(id))
        except JobNotFound:
            return None

    def _without_key(self, id: str) -> StoredJob | None:
        """The job of a schedule: its own id is that of the result."""
        if len(id) != LENGTH:
            return None
        try:
            job = run(self.app.backend.blocking.get(id))
        except JobNotFound:
            return None
        return job if job.unique_key is None else None

    def _in_outbox(self, id: str) -> StoredJob | None:
        return outbox.find(connections[self.database], id) if self.on_commit else None

    def check(self, **_: Any) -> Iterable[checks.CheckMessage]:
        """The faults of the settings."""
        return settings_messages(self.alias, self.options, self.database, self.on_commit)
