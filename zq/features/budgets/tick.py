"""What budgets bring to the tick: their changes, and the hold on jobs that draw from them."""

from typing import get_args

from zq.features.budgets.model import MAX_BUDGETS
from zq.features.budgets.tick_changes import AnyBudgetChange, change_budgets
from zq.features.budgets.tick_hold import BudgetHold
from zq.features.budgets.tick_ledger import TokenLedger
from zq.tick.holds import hold_of
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """A ledger of at most `max_budgets` budgets."""
    hold = BudgetHold(options.get("max_budgets", MAX_BUDGETS))
    # What is due in a budget, it finds when a transaction begins.
    return Hooks(hold=hold, cleared=_clear)


def _clear(work: UnitOfWork, settings: bool) -> None:
    ledger = hold_of(work, TokenLedger)
    if ledger.is_used:
        ledger.clear(budgets=settings)


PHASES = (Phase(Stage.CHANGE, by_slices(change_budgets), get_args(AnyBudgetChange)),)
