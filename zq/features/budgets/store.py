"""What may be read of budgets, whichever the store is."""

from collections.abc import Sequence
from typing import Any, Protocol

from zq.features.budgets.model import Account, BudgetPolicy, BudgetState
from zq.store.api import Recovery


class BudgetReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        """All budgets in the order of their keys, or the budget with this key, if it exists."""


def account_of(row: Sequence[Any]) -> Account:
    """The account of a budget by its row."""
    key, allocation, duration_ms, burst, *rest = row
    return Account(key, BudgetPolicy(allocation, duration_ms, burst), *rest)


RECOVERY = Recovery(
    begin=("forget_in_use", "return_in_use"),
    returned=("count_returned",),
    lost=("note_lost_budgets", "make_lost_budgets", "forget_draws", "return_draws"),
)
"""A start counts anew what is drawn from budgets, and returned jobs wait for them."""
