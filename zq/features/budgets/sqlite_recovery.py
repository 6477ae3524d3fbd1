"""Budgets at a start: what is drawn from them is counted again, and returned jobs wait in lines."""

import sqlite3
from collections.abc import Sequence

from zq.store.api import as_json
from zq.store.sqlite.queries import load
from zq.store.sqlite.recovery import Recovery

QUERIES = load("zq.features.budgets.sqlite_tick")


def _count_again(connection: sqlite3.Connection) -> None:
    connection.execute(QUERIES["forget_in_use"])
    connection.execute(QUERIES["return_in_use"])


def _line_up(
    connection: sqlite3.Connection,
    returned: Sequence[int],
    shut: Sequence[int],
    heads: Sequence[int],
) -> None:
    keys = {"keys": as_json(returned)}
    connection.execute(QUERIES["hold_returned"], keys)
    connection.execute(QUERIES["count_returned"], keys)
    connection.execute(QUERIES["step_out"], {"keys": as_json(shut)})
    connection.execute(QUERIES["line_up_returned"], {"keys": as_json([*heads, *returned])})


RECOVERY = Recovery(begin=_count_again, returned=_line_up)
