"""The reads of budgets."""

import sqlite3

from zq.features.budgets.model import Account, BudgetPolicy, BudgetState
from zq.features.budgets.store import BudgetReads
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load

QUERIES = load(__name__)


class SqliteBudgetReads(BudgetReads):
    """The reads of budgets by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        return await self._lanes.looks(list_budgets, key, self._lanes.steady_of(now))


def list_budgets(connection: sqlite3.Connection, key: str | None, now: int) -> list[BudgetState]:
    """All budgets as they stand, or the budget with this key, if it exists."""
    found = []
    for row in connection.execute(QUERIES["budgets"], {"key": key}):
        name, allocation, duration_ms, burst, *rest = row
        policy = BudgetPolicy(allocation, duration_ms, burst)
        account = Account(name, policy, *rest)
        found.append(account.state(now))
    return found


READS = {BudgetReads: SqliteBudgetReads}
