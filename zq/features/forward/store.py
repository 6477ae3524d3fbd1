"""Reads of lanes."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from zq.features.forward.model import ALL_KEYS, ForwardLane


class UnderWay(NamedTuple):
    """The jobs of a lane that have numbers and have not arrived: how many, and the oldest key."""

    jobs: int
    oldest: int | None


class NewJobs(NamedTuple):
    """So many jobs, and the lowest of their keys."""

    jobs: int
    oldest: int


NO_JOBS = NewJobs(0, 0)


class LaneReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def lanes(self) -> list[ForwardLane]:
        """All lanes by name."""

    async def under_way(self) -> dict[int, UnderWay]:
        """The jobs under way on each lane that has jobs with numbers, by its id."""

    async def new_jobs(self, queues: Sequence[str], first: int) -> dict[str, NewJobs]:
        """The ready jobs in these queues from a key on, of those in no line, by queue."""

    async def waiting_bytes(self, queues: Sequence[str], span: range = ALL_KEYS) -> int:
        """The bytes of the payloads of all unfinished jobs in these queues with such keys."""
