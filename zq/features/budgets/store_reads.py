"""The reads of budgets."""

from zq.features.budgets.model import BudgetState
from zq.features.budgets.store import BudgetReads, account_of
from zq.store.snapshot import Snapshot, SnapshotLanes


class StoredBudgetReads(BudgetReads):
    """The reads of budgets by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        lanes = self._lanes
        return await lanes.looks(list_budgets, key, lanes.steady_of(now), lanes.ahead())


def list_budgets(snapshot: Snapshot, key: str | None, now: int, ahead: int) -> list[BudgetState]:
    """All budgets as they stand, or the budget with this key, if it exists.

    `now` is steady time, which is `ahead` of the wall.
    """
    return [account_of(row).state(now, ahead) for row in snapshot.rows("budgets", key=key)]


READS = {BudgetReads: StoredBudgetReads}
