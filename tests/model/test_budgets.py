"""Accounts of budgets at the ends of what a store can hold."""

from zq.features.budgets.model import MOST_DEBT, NEVER, BudgetPolicy, opened


def test_a_debt_and_the_time_until_it_is_paid_have_bounds() -> None:
    account = opened("b", BudgetPolicy(1, 2**53, 10), 0, 0)
    account.level = 1 - MOST_DEBT
    account.correct(0, 2**32 - 1, 0)
    assert (account.level, account.pays(1, 0)) == (-MOST_DEBT, NEVER)
