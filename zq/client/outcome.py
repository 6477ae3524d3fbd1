"""The outcome of an execution, for the hook, for listeners and for tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import msgspec

from zq.client.amounts import Seconds
from zq.client.errors import JobFailed
from zq.client.formats import JSON
from zq.client.job_error import JobError
from zq.client.running import Running


@dataclass
class Outcome:
    """One execution. A hook may change `result`, `error` and `ttl`.

    `ttl` says how long the result or error is kept; None means as at the enqueue. `final` is false
    if another try follows.
    """

    job: Running[Any]
    result: Any = None
    error: JobError | None = None
    ttl: Seconds | None = None
    final: bool = True
    worker_id: str = ""
    started_at: float = 0.0
    """Seconds since the epoch."""
    finished_at: float = 0.0
    exception: BaseException | None = field(default=None, repr=False)
    """The error that the handler raised, if it did so in this process."""

    @property
    def ok(self) -> bool:
        """True if the handler succeeded."""
        return self.error is None

    @property
    def status(self) -> Literal["completed", "failing", "dead"]:
        return "completed" if self.ok else "dead" if self.final else "failing"

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def payload(self) -> Any:
        return self.job.payload

    @property
    def attempts(self) -> int:
        """The number of executions, including this one."""
        return self.job.attempt

    @property
    def max_attempts(self) -> int | None:
        return self.job.max_attempts

    @property
    def created_at(self) -> datetime:
        return self.job.created_at

    @property
    def duration(self) -> float:
        """The time that the handler took, in seconds."""
        return self.finished_at - self.started_at

    @property
    def encoded(self) -> bytes:
        """The result, or the error, as JSON."""
        return JSON.encode(self.result) if self.ok else msgspec.json.encode(self.error)


@dataclass(frozen=True)
class DrainReport:
    """The end of a worker: how many executions finished, and how many jobs went back unfinished."""

    finished: int
    returned: list[str]
    stuck: int = 0
    """The number of threads and coroutines that were still at work and cannot be ended."""
    aborted: bool = False
    """True if the worker had to end at once."""


def raise_failures_of(outcomes: Sequence[Outcome]) -> None:
    """Raise what the handler of the first final failure has raised."""
    for outcome in outcomes:
        if not outcome.ok and outcome.final:
            raise outcome.exception or _died(outcome)


def _died(outcome: Outcome) -> JobFailed:
    message = outcome.error.message if outcome.error else "it failed"
    return JobFailed(f"job {outcome.id} is dead: {message}", outcome.error)
