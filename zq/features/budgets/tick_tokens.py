"""The accounts of all budgets in memory, and the steady time that they use.

Every write goes to memory and to the database. If a transaction fails, the accounts are read again.
If the clock has gone back, accounts are written at once, so that a part of a transaction that is
undone keeps that.
"""

from collections.abc import Iterable

from zq.features.budgets.model import Account, BudgetPolicy
from zq.store.api import Transaction


class TokenAccounts:
    """Accounts by the keys of their budgets. A transaction ends with `commit` or `roll_back`."""

    def __init__(self) -> None:
        self.by_key: dict[str, Account] = {}
        self.now = 0
        """The steady time of the current transaction, in milliseconds; 0 before the first."""
        self._committed = 0

    def read(self, tx: Transaction) -> None:
        """Read the accounts from the database."""
        self.by_key.clear()
        for key, allocation, duration_ms, burst, *rest in tx.table("read_budgets"):
            policy = BudgetPolicy(allocation, duration_ms, burst)
            self.by_key[key] = Account(key, policy, *rest)

    def pass_to(self, tx: Transaction, now: int) -> bool:
        """Go on at another time. Return whether the clock has gone back, so that all times change.

        Tokens that have come so far stay. After a stop of the server, nobody knows how far the
        clock had come: further tokens count from the time that it shows now.
        """
        former, self.now = self.now, now
        accounts = self.by_key.values()
        if former:
            behind = list(accounts) if now < former else []
            for account in behind:
                account.settled_at = max(account.settled_at - (former - now), 0)
                if account.held_until is not None:
                    account.held_until = max(account.held_until - (former - now), 0)
        else:
            behind = [account for account in accounts if account.settled_at > now]
            for account in behind:
                account.settled_at = now
        if behind:
            self.write(tx, [account.key for account in behind])
        return bool(behind)

    def commit(self) -> None:
        """Note that the transaction is committed."""
        self._committed = self.now

    def roll_back(self) -> None:
        """Note that the transaction has failed: its time is still to come."""
        self.now = self._committed

    def write(self, tx: Transaction, keys: Iterable[str]) -> None:
        """Write accounts to the database."""
        tx.replace("budgets", COLUMNS, [_row(self.by_key[key]) for key in keys])


COLUMNS = (
    "key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,"
    " pays_at, maker, unfinished, waiting, costliest, held_until"
)


def _row(account: Account) -> tuple[object, ...]:
    policy = account.policy
    return (
        *(account.key, policy.allocation, policy.duration_ms, policy.burst),
        *(account.created_at, account.updated_at, account.in_use, account.level),
        *(account.carry, account.settled_at, account.pays_at, account.maker),
        *(account.unfinished, account.waiting, account.costliest, account.held_until),
    )
