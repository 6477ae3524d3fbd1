"""Mends the rows of logs, which say how each log is called and which records it has.

A database has the logs that its migrations have made, and the numbers in their rows follow from the
batches of their records. So a row is corrected in its place, and no record is lost by it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from zq.model.damage import Misfit
from zq.model.log import Bounds
from zq.store.sqlite.migrate import migrate
from zq.store.sqlite.quarantine import note_again
from zq.store.sqlite.queries import load

QUERIES = load("zq.store.sqlite.mending") | load("zq.store.sqlite.log")

MOST_RECORDS = 2**53
"""No log comes to so many records."""


class LogRow(NamedTuple):
    """A row of `logs`. `name` is in bytes, since it may be no text."""

    id: int
    name: bytes
    min_seq: int
    max_seq: int
    bytes: int
    max_age_ms: int | None
    max_records: int | None
    max_bytes: int | None

    @property
    def bounds(self) -> Bounds:
        """How much of the log is kept."""
        return Bounds(self.max_age_ms, self.max_records, self.max_bytes)


class WrongLog(NamedTuple):
    """A log whose row is lost or wrong: the row as it should be, and what is the matter."""

    right: LogRow
    reason: str


def wrong_logs(connection: sqlite3.Connection) -> Iterator[WrongLog]:
    """Find the logs whose rows are lost, or are not what their records say."""
    rows = _rows(connection)
    for id, blank in _blank_rows().items():
        found = rows.get(id)
        right = _corrected(blank, found or blank, *_records(connection, id))
        if found is None:
            yield WrongLog(right, "the row is lost")
        elif right.name != found.name:
            yield WrongLog(right, "it had another name")
        elif right != found:
            yield WrongLog(right, "its numbers were not those of its records")


def mend_logs(connection: sqlite3.Connection, now: int) -> Iterator[Misfit]:
    """Correct the rows of logs, and make lost ones anew. Call it in a transaction."""
    for right, reason in [*wrong_logs(connection)]:
        name = right.name.decode()
        connection.execute(QUERIES["put_log"], {**right._asdict(), "name": name})
        connection.execute(QUERIES["set_bounds"], {"log": name, **right.bounds._asdict()})
        yield note_again(connection, Misfit("logs", name, reason, now))


def _blank_rows() -> dict[int, LogRow]:
    """The rows of a new database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as blank:
        migrate(blank)
        return _rows(blank)


def _rows(connection: sqlite3.Connection) -> dict[int, LogRow]:
    return {row[0]: LogRow(*row) for row in connection.execute(QUERIES["logs"])}


def _records(connection: sqlite3.Connection, log: int) -> tuple[int | None, int, int]:
    """The first and the last number of a log, and the bytes of its records."""
    found: tuple[int | None, int, int] = connection.execute(
        QUERIES["records"], {"log": log}
    ).fetchone()
    return found


def _corrected(blank: LogRow, row: LogRow, first: int | None, last: int, size: int) -> LogRow:
    """A row with the numbers of its records, as far as its own ones cannot be.

    Its numbers may reach further than its records, of which some may have been set aside.
    """
    low, high = row.min_seq, row.max_seq
    if not last <= high < MOST_RECORDS:
        high = max(last, low - 1 if 0 < low < MOST_RECORDS else 0)
    latest = high + 1 if first is None else first
    if not 0 < low <= latest:
        low = latest
    bounds = row.bounds if all((bound or 0) >= 0 for bound in row.bounds) else blank.bounds
    return LogRow(blank.id, blank.name, low, high, size, *bounds)
