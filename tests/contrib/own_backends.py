"""The backends that Django's own tests ask for, as backends of zq on the server of ZQ_URL.

They are `ZqBackend` with what the tests look at in a test's process: the list of all results, and a
task that has run when `enqueue` returns.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from zq.client.backend import run
from zq.client.values import JobQuery
from zq.client.worker.worker import Worker
from zq.contrib.django import ZqBackend
from zq.contrib.django.execution import worker_app


class DummyBackend(ZqBackend):
    """Stores tasks, and executes none."""

    @property
    def results(self) -> list[Any]:
        """What the server has, the oldest first."""
        jobs = run(self.app.backend.blocking.jobs()).jobs
        return [self.get_result(job.unique_key) for job in jobs if job.unique_key]

    def clear(self) -> None:
        """Delete all jobs of the server."""
        run(self.app.backend.blocking.sweeps.delete(JobQuery(queues=("default",))))


class ImmediateBackend(ZqBackend):
    """Has a worker execute a task while `enqueue` waits."""

    def __init__(self, alias: str, params: Any) -> None:
        super().__init__(alias, params)
        self.job_options = {"max_attempts": 1}

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """The result of the execution."""
        result = super().enqueue(task, args, kwargs)
        with ThreadPoolExecutor(1) as thread:  # this one may have an event loop that waits
            thread.submit(asyncio.run, self._work()).result()
        return self.get_result(result.id)

    async def _work(self) -> None:
        async with worker_app(self, "w1") as app:
            await Worker(app, queues=["default"]).run_until_idle()
