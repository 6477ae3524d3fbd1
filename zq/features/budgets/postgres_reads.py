"""The reads of budgets."""

from zq.features.budgets.model import BudgetState
from zq.features.budgets.store import BudgetReads, account_of
from zq.store.postgres.connection import Connection
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes

QUERIES = load("zq.features.budgets.postgres_tick")


class PostgresBudgetReads(BudgetReads):
    """The reads of budgets by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._lanes = lanes

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        lanes = self._lanes
        return await lanes.looks(list_budgets, key, lanes.steady_of(now), lanes.ahead())


def list_budgets(
    connection: Connection, key: str | None, now: int, ahead: int
) -> list[BudgetState]:
    """All budgets as they stand, or the budget with this key, if it exists.

    `now` is steady time, which is `ahead` of the wall.
    """
    which = "WHERE key = :key" if key is not None else "ORDER BY key"
    rows = rows_of(connection, f"{QUERIES['read_budgets']} {which}", {"key": key})
    return [account_of(row).state(now, ahead) for row in rows]


READS = {BudgetReads: PostgresBudgetReads}
