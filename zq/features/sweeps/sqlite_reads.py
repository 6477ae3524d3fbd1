"""The reads of sweeps."""

import sqlite3

import msgspec

from zq.features.sweeps.model import StoredSweep
from zq.features.sweeps.store import SweepReads
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.lookups import text_of
from zq.store.sqlite.queries import load

_list = msgspec.json.Decoder(list[StoredSweep])


class SqliteSweepReads(SweepReads):
    """The reads of sweeps by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def sweeps(self, before: int, limit: int) -> list[StoredSweep]:
        return await self._lanes.looks(_sweeps, before, limit)


def _sweeps(connection: sqlite3.Connection, before: int, limit: int) -> list[StoredSweep]:
    """Sweeps that have changed jobs, the latest first."""
    asked: dict[str, object] = {"before": before, "limit": limit}
    return _list.decode(
        text_of(connection, load("zq.features.sweeps.sqlite_tick")["sweeps"], asked)
    )


READS = {SweepReads: SqliteSweepReads}
