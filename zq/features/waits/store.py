"""What a store can be asked about jobs that wait, and about those that run for long."""

from collections.abc import Sequence

from zq.features.waits import store_lookups as waits
from zq.features.waits.model import BudgetWait, OpenGroup, TimePlace, WaitingJob
from zq.features.waits.model_queue import BudgetLine, StoredWaits
from zq.model.job import JobRecord, show_dates
from zq.model.reach import Reach
from zq.store.snapshot import SnapshotLanes


class WaitReads:
    """The reads behind the questions why a job waits, and what comes next."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def waiting(self, key: int, reach: Reach, now: int) -> WaitingJob | None:
        """One job with what it may wait for, by a bounded number of rows."""
        found = await self._lanes.looks(waits.waiting_job, key, reach, self._lanes.steady_of(now))
        if found is None:
            return None
        self._lanes.shown_one(found.job)
        fair = found.fair
        if fair is not None and fair.opens_at is not None:
            fair = fair._replace(opens_at=self._lanes.date_of(fair.opens_at))
        return found._replace(budgets=self._dated(found.budgets), fair=fair)

    async def stored_waits(self, queue: str, now: int) -> StoredWaits:
        """The facts about a queue's waiting jobs, from a bounded number of rows."""
        found = await self._lanes.looks(waits.stored_waits, queue, self._lanes.steady_of(now))
        return found._replace(lines=[self._line(line) for line in found.lines])

    async def unpaid_lines(self, most: int, now: int) -> list[BudgetLine]:
        """Ready jobs that their budgets cannot pay, the most first. It reads up to `most` lines."""
        found = await self._lanes.looks(waits.unpaid_lines, None, most, self._lanes.steady_of(now))
        return [self._line(line) for line in found]

    async def scheduled(self, reach: Reach, after: TimePlace, limit: int) -> list[JobRecord]:
        """The scheduled jobs after a place, those that are ready first, without large payloads."""
        ahead = self._lanes.ahead()
        found = await self._lanes.scans(waits.scheduled, reach, after, limit, ahead)
        show_dates(found, ahead)
        return found

    async def running_long(self, reach: Reach, before: int, limit: int) -> list[JobRecord]:
        """Some jobs in flight since before `before`, the longest first, without large payloads."""
        return self._lanes.shown(await self._lanes.scans(waits.running_long, reach, before, limit))

    async def groups(self, queue: str, after: str, limit: int) -> list[OpenGroup]:
        """The groups of a queue beyond `after` that have unfinished jobs, in byte order."""
        return await self._lanes.scans(waits.groups, queue, after, limit)

    def _line(self, line: BudgetLine) -> BudgetLine:
        return line._replace(waits=self._dated(line.waits))

    def _dated(self, found: Sequence[BudgetWait]) -> list[BudgetWait]:
        date_of = self._lanes.date_of
        return [
            wait._replace(
                pays_at=None if wait.pays_at is None else date_of(wait.pays_at),
                held_until=None if wait.held_until is None else date_of(wait.held_until),
            )
            for wait in found
        ]


READS = (WaitReads,)
