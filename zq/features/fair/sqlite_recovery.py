"""Fair shares at a start: jobs that were given back wait again, and are charged with nothing."""

import sqlite3
from collections.abc import Sequence

from zq.store.api import as_json
from zq.store.sqlite.queries import load
from zq.store.sqlite.recovery import Recovery

QUERIES = load("zq.features.fair.sqlite_tick")


def _open(connection: sqlite3.Connection) -> None:
    connection.execute(QUERIES["open_every_key"])


def _return(connection: sqlite3.Connection, returned: Sequence[int]) -> None:
    for name in ("return_shares", "place_returned"):
        connection.execute(QUERIES[name], {"keys": as_json(returned)})


def _recount(connection: sqlite3.Connection) -> None:
    for name in ("count_shares", "count_shared_queues"):
        connection.execute(QUERIES[name])


RECOVERY = Recovery(begin=_open, returned=_return, lost=_recount)
