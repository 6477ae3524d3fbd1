"""Reads of lanes."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.features.forward.model import ALL_KEYS, LEAVING, ForwardLane, LaneRule
from zq.store.api import Recovery
from zq.store.snapshot import SnapshotLanes


class UnderWay(NamedTuple):
    """The jobs of a lane that have numbers and have not arrived: how many, and the oldest key."""

    jobs: int
    oldest: int | None


class NewJobs(NamedTuple):
    """The number of jobs, and the lowest of their keys."""

    jobs: int
    oldest: int


NO_JOBS = NewJobs(0, 0)


class LaneReads:
    """The reads of lanes. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, readers: SnapshotLanes) -> None:
        self._looks = readers.looks
        self._scans = readers.scans

    async def lanes(self) -> list[ForwardLane]:
        """All lanes by name."""
        return await self._looks.found(ForwardLane, "lanes")

    async def under_way(self) -> dict[int, UnderWay]:
        """The jobs under way on each lane that has jobs with numbers, by its id."""
        found = await self._looks.found(tuple[int, int, int | None], "under_way")
        return {lane: UnderWay(jobs, oldest) for lane, jobs, oldest in found}

    async def new_jobs(self, queues: Sequence[str], first: int) -> dict[str, NewJobs]:
        """The ready jobs in these queues from a key on, of those in no line, by queue."""
        asked = {"queues": list(queues), "first": first}
        found = await self._scans.found(tuple[str, int, int], "new_jobs", **asked)
        return {queue: NewJobs(jobs, oldest) for queue, jobs, oldest in found}

    async def has_old(self, queues: Sequence[str], upto: int, since: int) -> bool:
        """True if a ready job of these queues, up to a key, has been ready since a date.

        Jobs that wait behind others of their groups or lines are left out.
        """
        asked = {"queues": list(queues), "upto": upto, "since": since}
        return bool(await self._looks.value("has_old", **asked))

    async def waiting_bytes(self, queues: Sequence[str], span: range = ALL_KEYS) -> int:
        """The bytes of the payloads of all unfinished jobs in these queues with such keys."""
        asked = {"queues": list(queues), "first": span.start, "end": span.stop}
        return int(await self._scans.value("waiting_bytes", **asked))


READS = (LaneReads,)

RECOVERY = Recovery(found=(LEAVING,))

FORMS = {"lanes": {"rule": LaneRule}, "lane_batches": {"keys": list[int]}}
"""The forms of what columns hold, by table."""
