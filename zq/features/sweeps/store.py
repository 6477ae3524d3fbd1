"""What may be read of sweeps, whichever the store is."""

from zq.features.sweeps.model import StoredSweep, SweepOutline
from zq.store.api import Recovery
from zq.store.snapshot import SnapshotLanes


class SweepReads:
    """The reads of sweeps. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._looks = lanes.looks

    async def sweeps(self, before: int, limit: int) -> list[StoredSweep]:
        """Up to `limit` sweeps that changed jobs, with ids below `before`, the latest first."""
        return await self._looks.found(StoredSweep, "sweeps", before=before, limit=limit)


READS = (SweepReads,)

RECOVERY = Recovery(found=("last_sweep",))
"""The latest sweep that had changed something."""

FORMS = {"sweeps": {"outline": SweepOutline}}
"""The forms of what columns hold, by table."""
