"""The reads of lanes."""

from collections.abc import Sequence

from zq.features.forward.model import ALL_KEYS, ForwardLane
from zq.features.forward.store import LaneReads, NewJobs, UnderWay
from zq.store.snapshot import SnapshotLanes


class StoredLaneReads(LaneReads):
    """The reads of lanes by the lanes of readers."""

    def __init__(self, readers: SnapshotLanes) -> None:
        self._looks = readers.looks
        self._scans = readers.scans

    async def lanes(self) -> list[ForwardLane]:
        return await self._looks.found(ForwardLane, "lanes")

    async def under_way(self) -> dict[int, UnderWay]:
        found = await self._looks.found(tuple[int, int, int | None], "under_way")
        return {lane: UnderWay(jobs, oldest) for lane, jobs, oldest in found}

    async def new_jobs(self, queues: Sequence[str], first: int) -> dict[str, NewJobs]:
        asked = {"queues": list(queues), "first": first}
        found = await self._scans.found(tuple[str, int, int], "new_jobs", **asked)
        return {queue: NewJobs(jobs, oldest) for queue, jobs, oldest in found}

    async def waiting_bytes(self, queues: Sequence[str], span: range = ALL_KEYS) -> int:
        asked = {"queues": list(queues), "first": span.start, "end": span.stop}
        return int(await self._scans.value("waiting_bytes", **asked))


READS = {LaneReads: StoredLaneReads}
