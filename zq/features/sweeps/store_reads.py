"""The reads of sweeps."""

from zq.features.sweeps.model import StoredSweep
from zq.features.sweeps.store import SweepReads
from zq.store.snapshot import SnapshotLanes


class StoredSweepReads(SweepReads):
    """The reads of sweeps by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._looks = lanes.looks

    async def sweeps(self, before: int, limit: int) -> list[StoredSweep]:
        return await self._looks.found(StoredSweep, "sweeps", before=before, limit=limit)


READS = {SweepReads: StoredSweepReads}
