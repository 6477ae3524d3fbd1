"""The reads of sweeps."""

import msgspec

from zq.features.sweeps.model import StoredSweep
from zq.features.sweeps.store import SweepReads
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.readers import PostgresLanes

_SWEEPS = """
SELECT id, outline, changed, passed, changed_at, taken_back FROM sweeps
WHERE id < :before ORDER BY id DESC LIMIT :limit
"""


class PostgresSweepReads(SweepReads):
    """The reads of sweeps by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._lanes = lanes

    async def sweeps(self, before: int, limit: int) -> list[StoredSweep]:
        asked = {"before": before, "limit": limit}
        return msgspec.convert(await self._lanes.looks(rows_of, _SWEEPS, asked), list[StoredSweep])


READS = {SweepReads: PostgresSweepReads}
