"""What happens outside the tick, in the writer's thread: recovery, checkpoints, free space."""

import sqlite3
from collections import Counter
from functools import partial
from typing import NamedTuple

import msgspec

from zq.model.commands import Deadlines
from zq.model.damage import Quarantined
from zq.model.lifecycle import Status
from zq.model.log import Bounds
from zq.store.connection import patiently
from zq.store.history import LOG
from zq.store.log import last_seq, set_bounds
from zq.store.quarantine import read_quarantine
from zq.store.queries import load
from zq.store.work import QUERIES as TICK
from zq.store.work import as_json, read_deadlines

QUERIES = load("upkeep.sql")

TIDY_PAGES = 256
"""Pages given back in one slice: 1 MiB."""

SPARE_PAGES = 4096
"""Free pages that are kept for the next burst, besides a quarter of the file."""


class Recovered(NamedTuple):
    """What a start finds: identity, the highest key ever minted, how many jobs were given back,
    the last record of the history.

    `claimed` are still in flight: their leases have deadlines and survive. `quarantined` are rows
    that were set aside.
    """

    deadlines: Deadlines
    epoch: str
    id_suffix: str
    last_key: int
    returned: int
    claimed: int
    logged: int
    quarantined: Quarantined


def recover(connection: sqlite3.Connection, history: Bounds | None = None) -> Recovered:
    """Make the jobs ready again that streams held when the server stopped; read the identity.

    They keep their attempts, ids and places. Where a `history` is kept, it has these bounds from
    now on. It runs before the first request is accepted.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        left = _value(connection, "read_left_in_flight")
        held = msgspec.json.decode(left, type=list[tuple[int, str]])
        if held:
            keys = {"keys": as_json([key for key, _ in held])}
            connection.execute(QUERIES["give_back_all"], keys)
            connection.execute(TICK["restore_locks"], keys)
            groups = _value(connection, "groups_of", keys)
            for name in ("shut_groups", "open_groups"):
                connection.execute(TICK[name], {"groups": groups})
            deltas = [
                (queue, status, n * sign)
                for queue, n in Counter(queue for _, queue in held).items()
                for status, sign in ((Status.IN_FLIGHT, -1), (Status.READY, 1))
            ]
            connection.execute(TICK["count"], {"deltas": as_json(deltas)})
        claimed = connection.execute(QUERIES["count_claimed"]).fetchone()[0]
        if history is not None:
            set_bounds(connection, LOG, history)
        meta = dict(connection.execute(QUERIES["read_meta"]))
        highest = connection.execute(QUERIES["highest_key"]).fetchone()[0]
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    last_key = max(meta["high_water"], highest)
    deadlines = read_deadlines(connection)
    logged = last_seq(connection, LOG)
    returned = len(held)
    return Recovered(
        deadlines,
        meta["epoch"],
        meta["id_suffix"],
        last_key,
        returned,
        claimed,
        logged,
        read_quarantine(connection),
    )


def checkpoint(connection: sqlite3.Connection) -> tuple[int, int]:
    """Copy the WAL into the database without waiting for readers.

    Answers how many pages the WAL holds, and how many of them are copied.
    """
    _busy, pages, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages, copied


def restart_log(connection: sqlite3.Connection) -> None:
    """Write the first page of a log that has been copied whole.

    SQLite flushes the header of a log that begins anew before anything else of it. That is done
    here, in the connection's thread, rather than by the next tick in the event loop.
    """
    patiently(connection, partial(connection.execute, QUERIES["touch"]))


def shrink_wal(connection: sqlite3.Connection) -> None:
    """Make the WAL's file empty, unless a reader is in the way: the writer waits for nobody."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def tidy(connection: sqlite3.Connection) -> bool:
    """Forget queues without jobs and shrink the file by a slice, if much of it is free."""
    return patiently(connection, partial(_tidy, connection))


def _tidy(connection: sqlite3.Connection) -> bool:
    connection.execute(QUERIES["forget_empty_queues"])
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    free: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    spare = max(SPARE_PAGES, pages // 4)
    if free <= spare:
        return False
    connection.execute(f"PRAGMA incremental_vacuum({min(TIDY_PAGES, free - spare)})").fetchall()
    return free - spare > TIDY_PAGES


def _value(
    connection: sqlite3.Connection, query: str, parameters: dict[str, str] | tuple[()] = ()
) -> str:
    text: str = connection.execute(QUERIES[query], parameters).fetchone()[0]
    return text
