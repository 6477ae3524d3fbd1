"""A worker's log lines about each job: its beginning, its end, and its failures.

A line names the task, the job, its queue and attempt, how long the job has waited and how long the
handler has run. Successes are logged at INFO and beginnings at DEBUG. They cost nothing if the
logger `zq.worker` is set to a higher level.
"""

import logging
import time
from typing import Any

from zq.client.job_error import DETAILS
from zq.client.running import Running, current
from zq.client.values import LeasedFailure
from zq.client.worker.execution import Execution
from zq.client.worker.handlers import is_final

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
