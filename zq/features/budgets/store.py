"""What may be read of budgets, whichever the store is."""

from typing import Annotated

from msgspec import Meta

from zq.features.budgets.model import MOST_DEBT, BudgetState, Draw, account_of
from zq.store.api import Recovery
from zq.store.snapshot import Snapshot, SnapshotLanes


class BudgetReads:
    """The reads of budgets. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        """All budgets in the order of their keys, or the budget with this key, if it exists."""
        lanes = self._lanes
        return await lanes.looks(list_budgets, key, lanes.steady_of(now), lanes.ahead())


def list_budgets(snapshot: Snapshot, key: str | None, now: int, ahead: int) -> list[BudgetState]:
    """All budgets as they stand, or the budget with this key, if it exists.

    `now` is steady time, which is `ahead` of the wall.
    """
    return [account_of(row).state(now, ahead) for row in snapshot.rows("budgets", key=key)]


READS = (BudgetReads,)

RECOVERY = Recovery(
    begin=("forget_in_use", "return_in_use"),
    returned=("count_returned",),
    lost=("note_lost_budgets", "make_lost_budgets", "forget_draws", "return_draws"),
)
"""A start counts anew what is drawn from budgets, and returned jobs wait for them."""

FORMS = {
    "budgets": {"level": Annotated[int, Meta(ge=-MOST_DEBT, le=2**53)]},
    "lines": {"draws": list[Draw]},
}
"""The forms of what columns hold, by table."""
