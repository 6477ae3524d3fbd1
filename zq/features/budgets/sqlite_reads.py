"""The reads of budgets."""

import sqlite3

from zq.features.budgets.model import BudgetState
from zq.features.budgets.store import BudgetReads, account_of
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load

QUERIES = load(__name__)


class SqliteBudgetReads(BudgetReads):
    """The reads of budgets by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        lanes = self._lanes
        return await lanes.looks(list_budgets, key, lanes.steady_of(now), lanes.ahead())


def list_budgets(
    connection: sqlite3.Connection, key: str | None, now: int, ahead: int
) -> list[BudgetState]:
    """All budgets as they stand, or the budget with this key, if it exists.

    `now` is steady time, which is `ahead` of the wall.
    """
    rows = connection.execute(QUERIES["budgets"], {"key": key})
    return [account_of(row).state(now, ahead) for row in rows]


READS = {BudgetReads: SqliteBudgetReads}
