"""What may be read of budgets, whichever the store is."""

from typing import Protocol

from zq.features.budgets.model import BudgetState


class BudgetReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        """All budgets in the order of their keys, or the budget with this key, if it exists."""
