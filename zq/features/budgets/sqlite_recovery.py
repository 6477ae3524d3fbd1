"""Budgets at a start: what is drawn from them is counted again, and returned jobs wait for them."""

import sqlite3
from collections.abc import Sequence

from zq.store.api import as_json
from zq.store.sqlite.queries import load
from zq.store.sqlite.recovery import Recovery

QUERIES = load("zq.features.budgets.sqlite_tick")


def _count_again(connection: sqlite3.Connection) -> None:
    connection.execute(QUERIES["forget_in_use"])
    connection.execute(QUERIES["return_in_use"])


def _count_returned(connection: sqlite3.Connection, returned: Sequence[int]) -> None:
    connection.execute(QUERIES["count_returned"], {"keys": as_json(returned)})


def _recount(connection: sqlite3.Connection) -> None:
    connection.execute(QUERIES["forget_draws"])
    connection.execute(QUERIES["return_draws"])


RECOVERY = Recovery(begin=_count_again, returned=_count_returned, lost=_recount)
