"""The verb that tells which causes failures have."""

from collections.abc import Collection

from zq.model.failures import OTHER, ErrorGroup, grouped
from zq.model.reach import EVERYWHERE, Reach
from zq.store.api import Store


class Failures:
    """Groups of failures. A bounded reach sees only what happened in its queues."""

    def __init__(self, store: Store) -> None:
        self._reads = store.reads

    async def groups(self, queues: Collection[str], reach: Reach) -> list[ErrorGroup]:
        """The groups that have come in these queues, or in any; the latest one first."""
        rows = await self._reads.error_groups()
        return grouped(
            row
            for row in rows
            if (not queues or row.queue in queues)
            and (reach is EVERYWHERE or (row.signature != OTHER and reach.covers(row.queue)))
        )
