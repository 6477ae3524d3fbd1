"""The errors of the library. The package exports them as `zq.errors`.

ZqError                     `code` is stable and meant for programs
├── WaitTimeout             the wait is over, but the job goes on (a TimeoutError)
├── JobFailed               the job is dead; `error` is its last failure
│   └── RetriesExhausted    it has failed as often as its limit allows
├── JobCancelled
├── JobNotFound             a LookupError
├── StaleLease              the delivery has ended: drop the result
├── JobState                the job's `state` does not permit the operation
├── BackendError            the server refuses; `status` is the HTTP status, if there is one
│   └── Unavailable         a passing cause, or no answer: the same request may succeed later
├── InvalidOption           a ValueError and a TypeError
├── InvalidPayload          a value that cannot be sent, or has the wrong type (a ValueError)
├── NotFifo                 `group` or `dedupe` for a queue without order
├── MissingGroup            a job for a FIFO queue needs a group
├── UnknownQueue            a LookupError
├── EmptyPayload
└── DiscoveryError          a file of handlers that cannot be used

An error from a server has the server's code, from its header `Zq-Error`.
"""

from copy import copy
from typing import TYPE_CHECKING, Any

from zq.model.errors import InvalidRequest, JobCancelled, JobNotFound, StaleLease, ZqError

if TYPE_CHECKING:
    from zq.client.job_error import JobError

__all__ = [
    "BackendError",
    "DiscoveryError",
    "EmptyPayload",
    "InvalidOption",
    "InvalidPayload",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobState",
    "MissingGroup",
    "NotFifo",
    "RetriesExhausted",
    "StaleLease",
    "Unavailable",
    "UnknownQueue",
    "WaitTimeout",
    "ZqError",
    "refusal",
]


OF_THE_JOBS = (None, 400, 413, 422)
"""Statuses of refusals that are due to the jobs. The embedded engine has no status."""

OF_THE_NUMBERS = ("sequence_gap", "producer_fenced")
"""Codes of refusals by which the server has other numbers than its producer."""


def cut_of(error: ZqError, size: int) -> int:
    """The place at which to cut a refused bulk of `size` jobs, at least 2, so that the job at fault
    is found.

    The error names that job by its index: what lies before it can be stored, and then it comes
    first. Other errors concern them all, or one that is not known: halves of the bulk tell which.
    """
    return max(error.index, 1) if error.index is not None and error.index < size else size // 2


class WaitTimeout(ZqError, TimeoutError):
    """The job is not finished yet; `job` is its handle, to ask again."""

    code = "wait_timeout"

    def __init__(self, message: str, job: Any = None) -> None:
        super().__init__(message)
        self.job = job


class Deadlock(ZqError):
    """A job waits for one that cannot begin, since the jobs of its worker wait for each other."""

    code = "deadlock"


class JobFailed(ZqError):
    """The job is dead. `attempts` is how often it has failed, `error` the last failure."""

    code = "job_failed"

    def __init__(self, message: str, error: "JobError | None" = None) -> None:
        super().__init__(message)
        self.error = error
        self.attempts = 0 if error is None else error.attempt


class RetriesExhausted(JobFailed):
    """The job is dead: it has failed as often as its `max_attempts` allow."""

    code = "retries_exhausted"


class JobState(ZqError):
    """The job's state does not allow the operation."""

    code = "conflict"

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state


class BackendError(ZqError):
    """The server refuses, or does not answer.

    `status` is the HTTP status, if there is one. `__cause__` is the cause, if there was no answer.
    `in_doubt` tells whether the server may have done all the same what the request asked for.
    """

    code = "backend_error"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.in_doubt = False


class Unavailable(BackendError):
    """There is no answer, or a passing cause. The same request may succeed later."""

    code = "unavailable"


class InvalidOption(ZqError, ValueError, TypeError):
    """An option is unknown, or its value cannot be used. The message names it."""

    code = "invalid_option"


class InvalidPayload(ZqError, ValueError):
    """A value cannot be sent, or is not of its annotated type. Nothing has been enqueued."""

    code = "invalid_payload"


class NotFifo(ZqError, ValueError):
    """`group` or `dedupe` is for queues whose names end in ``.fifo``."""

    code = "not_fifo"


class MissingGroup(ZqError, ValueError):
    """A job for a queue whose name ends in ``.fifo`` needs a `group`."""

    code = "missing_group"


class UnknownQueue(ZqError, LookupError):
    """`zq.queues` has no queue of this name: `App.discover` has found no such file."""

    code = "unknown_queue"


class EmptyPayload(ZqError, ValueError):
    """A job for a queue of `zq.queues` has an empty payload."""

    code = "empty_payload"


class DiscoveryError(ZqError):
    """A file in the folder of `App.discover` cannot be used. The message names it."""

    code = "discovery_error"


PASSING = (408, 429, 500, 502, 503, 504, 507)
"""Statuses of passing causes, and of faults that the next try may avoid."""


def refusal(code: str, message: str, status: int | None = None, state: str = "") -> ZqError:
    """The library's error for a server's refusal. `code` is the server's."""
    error: ZqError
    if code == "job_not_found":
        error = JobNotFound(message)
    elif code in ("stale_lease", "not_in_flight"):
        error = StaleLease(message)
    elif code == "job_cancelled":
        error = JobCancelled(message)
    elif code in ("not_cancellable", "not_finished", "not_dead"):
        error = JobState(message, state)
    elif status in PASSING:
        error = Unavailable(message, status)
    else:
        error = BackendError(message, status)
    error.code = code
    return error


def again(error: ZqError) -> ZqError:
    """A copy of the error for another caller, who may add notes to it."""
    copied = copy(error)
    copied.__cause__ = error.__cause__
    return copied


def concerns_numbers(error: ZqError) -> bool:
    """True if the server has other numbers than the sender of a request."""
    return isinstance(error, BackendError) and error.code in OF_THE_NUMBERS


def is_foreign(error: BackendError) -> bool:
    """True if a proxy has answered, or another kind of server."""
    return error.code == BackendError.code or error.code.startswith("http_")


def may_pass(error: BackendError) -> bool:
    """True if the same request may succeed later. A proxy may refuse it as long as its server is
    away."""
    return isinstance(error, Unavailable) or is_foreign(error)


def concerns_jobs(error: ZqError) -> bool:
    """True if the jobs are at fault, and not the server, a proxy or the access key."""
    if isinstance(error, InvalidRequest | InvalidPayload):
        return True
    if not isinstance(error, BackendError) or isinstance(error, Unavailable):
        return False
    if error.code == "http_413":
        return True
    if error.code == "too_many_producers":
        return False
    return not is_foreign(error) and error.status in OF_THE_JOBS
