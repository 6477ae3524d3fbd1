"""What may be read of sweeps, whichever the store is."""

from typing import Protocol

from zq.features.sweeps.model import StoredSweep
from zq.store.api import Recovery


class SweepReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def sweeps(self, before: int, limit: int) -> list[StoredSweep]:
        """Up to `limit` sweeps that changed jobs, with ids below `before`, the latest first."""


RECOVERY = Recovery(found=("last_sweep",))
"""The latest sweep that had changed something."""
