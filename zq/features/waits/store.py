"""What a store can be asked about jobs that wait, and about those that run for long."""

from typing import NamedTuple, Protocol

from zq.features.waits.model import OpenGroup, WaitingJob
from zq.features.waits.model_queue import BudgetLine, StoredWaits
from zq.model.job import JobRecord
from zq.model.reach import Reach


class TimePlace(NamedTuple):
    """The place of a scheduled job in the order of times."""

    ready_at: int
    key: int


class WaitReads(Protocol):
    """The reads behind the questions why a job waits, and what comes next."""

    async def waiting(self, key: int, reach: Reach, now: int) -> WaitingJob | None:
        """One job with what it may wait for, by a bounded number of rows."""

    async def stored_waits(self, queue: str, now: int) -> StoredWaits:
        """The facts about a queue's waiting jobs, from a bounded number of rows."""

    async def unpaid_lines(self, most: int, now: int) -> list[BudgetLine]:
        """Ready jobs that their budgets cannot pay, the most first. It reads up to `most` lines."""

    async def scheduled(self, reach: Reach, after: TimePlace, limit: int) -> list[JobRecord]:
        """The scheduled jobs after a place, those that are ready first, without large payloads."""

    async def running_long(self, reach: Reach, before: int, limit: int) -> list[JobRecord]:
        """Some jobs in flight since before `before`, the longest first, without large payloads."""

    async def groups(self, queue: str, after: str, limit: int) -> list[OpenGroup]:
        """The groups of a queue beyond `after` that have unfinished jobs, in byte order."""
