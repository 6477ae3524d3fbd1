"""Jobs of zq as the results of Django's tasks."""

import logging
import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from zq.client.errors import InvalidPayload
from zq.client.job_error import JobError
from zq.client.payloads import call_of
from zq.client.values import MISSING, StoredJob
from zq.client.worker.handlers import ProcessDied, Timeout
from zq.contrib.django.framework import FrameworkTask, TaskError, TaskResult, TaskResultStatus

STATUSES = {
    "scheduled": TaskResultStatus.READY,
    "ready": TaskResultStatus.READY,
    "in_flight": TaskResultStatus.RUNNING,
    "completed": TaskResultStatus.SUCCESSFUL,
    "dead": TaskResultStatus.FAILED,
    "cancelled": TaskResultStatus.FAILED,
    "expired": TaskResultStatus.FAILED,
}

log = logging.getLogger("zq.django")


def task_of(path: str) -> Any | None:
    """The task at this path, or None."""
    try:
        found = import_string(path)
    except ImportError:
        return None
    except Exception:
        log.exception("the module of the task %s cannot be imported", path)
        return None
    return found if isinstance(found, FrameworkTask) else None


def as_stored(task: Any, **fields_now: Any) -> Any:
    """The task with fields as its job has them.

    `Task.using` refuses what no caller may ask for, but operators move jobs to any queue.
    """
    found = object.__new__(type(task))
    for name in (each.name for each in fields(task)):
        object.__setattr__(found, name, fields_now.get(name, getattr(task, name)))
    return found


def result_of(task: Any, id: str, job: StoredJob, errors: Sequence[JobError]) -> Any:
    """The result of a job. `errors` are its failures so far, the oldest first."""
    if job.meta and "run_after" in job.meta:
        moment = datetime.fromisoformat(job.meta["run_after"])
        task = as_stored(task, run_after=moment if settings.USE_TZ else timezone.make_naive(moment))
    args, kwargs = call_of(job.payload)
    began = errors[0].dequeued_at if errors else job.dequeued_at
    ended = {"completed": job.completed_at, "dead": job.failed_at, "cancelled": job.cancelled_at}
    result: Any = TaskResult(
        task=task,
        id=id,
        status=STATUSES[job.status or "ready"],
        enqueued_at=moment_of(job.created_at) if job.id else None,
        started_at=moment_of(began),
        last_attempted_at=moment_of(job.dequeued_at or began),
        finished_at=moment_of(ended.get(job.status or "")),
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=[error_of(error) for error in errors],
        worker_ids=_workers(job, errors),
    )
    if job.result is not MISSING:
        object.__setattr__(result, "_return_value", job.result)
    return result


def _workers(job: StoredJob, errors: Sequence[JobError]) -> list[str]:
    """The worker of each execution. zq keeps the names of those that have failed."""
    forgotten = [""] * (job.attempts - len(errors))
    successful = [""] * (job.status in ("in_flight", "completed"))
    return [*forgotten, *(error.worker or "" for error in errors), *successful]


def moment_of(ms: int | None) -> datetime | None:
    """A moment as Django's settings want it."""
    if ms is None:
        return None
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def error_of(error: JobError) -> Any:
    """The error of a failed attempt."""
    path = _path_of(error)
    # Django keeps no message apart from the traceback.
    said = error.traceback or f"{path}: {error.message}\n"
    return TaskError(exception_class_path=path, traceback=said)


def _path_of(error: JobError) -> str:
    """The path of an exception's class. Its traceback has it; a failure has only the name."""
    name = error.error_type or "Exception"
    found = re.findall(rf"^((?:\w+\.)*{re.escape(name)})(?::|$)", error.traceback, re.M)
    path: str = found[-1] if found else name
    if "." in path:
        return path
    return f"{_MODULES.get(name, 'builtins')}.{path}"


_MODULES = {each.__name__: each.__module__ for each in (InvalidPayload, ProcessDied, Timeout)}
"""The modules of the failures that have no traceback."""
