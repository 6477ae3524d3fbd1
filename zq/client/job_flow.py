"""A chain or a chord that has been started: waits for the result of its last step.

Each later step has a unique key that the starting program knows. A worker enqueues it before the
job of the step before is done, so whoever has seen that job's end finds the next one by its key.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from zq.client import replaced
from zq.client.amounts import Seconds
from zq.client.backend import Backend
from zq.client.errors import InvalidOption, JobNotFound
from zq.client.job import Job, TimeLeft
from zq.client.running import run_waiting
from zq.client.task import Task


class JobFlow:
    """A chain or a chord. `jobs` are the job of the first step, or those of all members."""

    def __init__(
        self, backend: Backend, jobs: list[Job[Any]], keys: Sequence[str], last: Task[Any, Any]
    ) -> None:
        """`keys` are the unique keys of the later steps. A last task with its own key has none."""
        self.jobs = jobs
        self._backend = backend
        self._keys = keys
        self._last = last

    def __repr__(self) -> str:
        return f"<JobFlow of {len(self.jobs)} jobs up to {self._last.name}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            said = replaced.remedy(replaced.JOB_METHODS, name)
            raise AttributeError(f"a flow has no {name!r}{said}", name=name, obj=self)

    async def result(self, timeout: Seconds | None = 30.0) -> Any:
        """Wait for the result of the last step. With a `timeout` of None, wait for ever.

        Raises the errors of `Job.result` for the first job that has not succeeded, and
        `JobNotFound` if nothing of the last step is kept.
        """
        return await self._result(self._backend, TimeLeft(timeout))

    def result_sync(self, timeout: Seconds | None = 30.0) -> Any:
        """Like `result`, for code without an event loop: it blocks."""
        waiting = self._result(self._backend.blocking, TimeLeft(timeout))
        return run_waiting(waiting, "await flow.result(…)")

    async def _result(self, backend: Backend, left: TimeLeft) -> Any:
        own = self._last.effective
        if self._keys and not (own.get("key") is None and own.get("batch") is None):
            raise InvalidOption(
                f"the last step, {self._last.name}, has a key or a batch, so its job may be that of"
                " others: let the step itself use the result"
            )
        value: Any = None
        for job in self.jobs:
            value = await _end(job, backend, left)
        for key in self._keys:
            value = await self._step(key, backend, left)
        if value is _GONE:
            raise JobNotFound(
                f"nothing of the last step, {self._last.name}, is kept: its result_ttl is over, or"
                " a job of the flow was deleted, or a worker in another language has executed it"
            )
        return value

    async def _step(self, key: str, backend: Backend, left: TimeLeft) -> Any:
        try:
            stored = await backend.by_key(key)
        except JobNotFound:
            return _GONE
        convert = self._last.signature.result if key == self._keys[-1] else None
        return await _end(Job(stored, self._backend, convert), backend, left)


_GONE = object()
"""Stands for the result of a job of which nothing is kept. The next step may still be there."""


async def _end(job: Job[Any], backend: Backend, left: TimeLeft) -> Any:
    try:
        return await job.outcome(backend, left)
    except JobNotFound:
        return _GONE
