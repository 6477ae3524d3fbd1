"""The service that stores new jobs with a batch: folding gets the requests that have some."""

from collections.abc import Sequence
from typing import Self

from zq.features.batches.engine import Folding
from zq.features.batches.model_jobs import batch_of
from zq.model.commands import EnqueueResult
from zq.model.job import NewJob
from zq.model.reach import Reach
from zq.service.services import RunningService, Services


class BatchPlanner(RunningService):
    """Plans the requests in which a job comes with a batch."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The planner of a server. New jobs come to it."""
        planner = cls(services.engine[Folding])
        services.jobs.planners.append(planner)
        return planner

    def __init__(self, folding: Folding) -> None:
        self._folding = folding

    def concerns(self, jobs: Sequence[NewJob]) -> bool:
        """True if one of the jobs comes with a batch."""
        return any(batch_of(job) is not None for job in jobs)

    async def enqueue(
        self, keys: Sequence[int], jobs: Sequence[NewJob], now: int, size: int, reach: Reach
    ) -> EnqueueResult:
        """Store or fold the jobs, as `Folding.enqueue` does."""
        return await self._folding.enqueue(keys, jobs, now, size, reach)


RUNNING = (BatchPlanner,)
