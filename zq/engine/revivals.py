"""The verbs that bring dead jobs back."""

from collections.abc import Awaitable, Callable

import msgspec

from zq.engine.sweeps import Sweeps
from zq.model.commands import Command, Retry
from zq.model.errors import JobNotFound
from zq.model.filters import Filter
from zq.model.ids import IdCodec
from zq.model.job import Job
from zq.model.reach import Reach

Submit = Callable[[Command], Awaitable[object]]


class Revivals:
    """A part of the engine."""

    def __init__(self, ids: IdCodec, sweeps: Sweeps, submit: Submit) -> None:
        self._ids = ids
        self._sweeps = sweeps
        self._submit = submit

    async def retry(self, id: str, reach: Reach) -> Job:
        """Make a dead job ready again. Raises `JobNotFound` or `NotDead`."""
        key = self._ids.key(id)
        if key is None:
            raise JobNotFound
        job = await self._submit(Retry(key=key, reach=reach))
        assert isinstance(job, Job)
        return job

    async def redrive(self, filter: Filter, limit: int | None) -> int:
        """Revive the jobs that match, slice by slice, up to `limit`; how many it were.

        They are dead ones, and where queues are named, also those that wait in these as in
        dead-letter queues. Jobs that came from another queue go back there.
        """
        return await self._sweeps.revive(msgspec.structs.replace(filter, revivable=True), limit)
