"""Mends the tables beside those of jobs after the disk has changed rows of them.

Ticks and readers decode their rows by many statements, and none of these says which row it could
not decode. So whoever meets such a row has all of these tables looked through. A row that its own
table would refuse, or whose texts are not what is kept there, is set aside. The rows that follow
from those of jobs are made anew then: lines, and what rooms count (`Recovery.lost`). It takes as
long as the tables are, and happens only after damage.

A database has the logs that its migrations have made, and the numbers in their rows follow from the
batches of their records. So a row of `logs` is corrected in its place, and no record is lost by it.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import cache
from itertools import chain
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from zq.model.effects import Misfit
from zq.model.log import Bounds
from zq.rooms import parts
from zq.store.sqlite.damage import MISCOUNTED
from zq.store.sqlite.identity import check_meta
from zq.store.sqlite.migrate import migrate
from zq.store.sqlite.quarantine import QUERIES as OF_QUARANTINE
from zq.store.sqlite.quarantine import keys_of, move, note_again, reason_of, set_aside
from zq.store.sqlite.queries import load

QUERIES = load(__name__) | load("zq.store.sqlite.log")

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


LINES = load("zq.store.sqlite.lines")

JUDGED = 1000
"""How many jobs are judged together. If one of them is refused, each is judged alone."""

_APART = frozenset(
    ("jobs", "payloads", "results", "errors", "logs", "log_batches", "topic_records", "quarantine")
)
"""Tables whose rows are found by their readers, or that would take long."""

Forms = Mapping[str, Mapping[str, Any]]
"""What some columns hold: the type that their JSON is decoded to, or the type of their numbers, by
table and column. Empty texts hold nothing. Rooms have theirs as `FORMS` of `store.py`."""

_FORMS: Forms = {"lines": {"shut_cost": Annotated[int, Meta(ge=1)]}}


class UnreadableRow(NamedTuple):
    """A row that cannot be read: its table, the values of its key there, and why."""

    table: str
    place: dict[str, object]
    reason: str


def unreadable_rows(connection: sqlite3.Connection) -> Iterator[UnreadableRow]:
    """Find the unreadable rows of all these tables."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as rules:
        for table, sql in connection.execute(QUERIES["tables"]).fetchall():
            if table not in _APART:
                rules.execute(sql)
                yield from _unreadable_in(connection, rules, table)


def set_aside_unreadable(connection: sqlite3.Connection, now: int) -> Iterator[Misfit]:
    """Set aside the unreadable rows of all these tables. Call it in a transaction.

    What follows from other rows is corrected in its place, by rooms too: their `MENDS`.
    """
    for mend in (mend_logs, *chain.from_iterable(parts("sqlite_quarantine", "MENDS", tuple))):
        yield from mend(connection, now)
    for table, place, reason in [*unreadable_rows(connection)]:
        yield move(connection, table, place, reason, now)
    queues = [queue for (queue,) in connection.execute(OF_QUARANTINE["queues"])]
    yield from set_aside(connection, "queue_settings", queues, now)


def lead_back(connection: sqlite3.Connection, now: int) -> Iterator[Misfit]:
    """Lead jobs whose line is lost, or is another one than their rows name, into theirs.

    A line that does not fit its jobs is set aside.
    """
    (keys,) = connection.execute(QUERIES["astray"]).fetchone()
    if keys == "[]":
        return
    for line in msgspec.json.decode(connection.execute(QUERIES["misnamed"]).fetchone()[0]):
        reason = "its jobs are of another line"
        yield move(connection, "lines", {"id": line}, reason, now)
    ahead = connection.execute(QUERIES["ahead"]).fetchone()[0]
    for name in ("name_lines", "enter_lines", "leave_lines"):
        connection.execute(LINES[name], {"keys": keys, "now": now, "ahead": ahead})
    (lines,) = connection.execute(LINES["lines_of_jobs"], {"keys": keys}).fetchone()
    connection.execute(LINES["refresh_lines"], {"lines": lines})
    connection.execute(QUERIES["place_astray"])


def count_again(
    connection: sqlite3.Connection, of_rooms: Iterable[str], now: int
) -> Iterator[Misfit]:
    """Make anew what is kept about jobs, by statements of rooms too (`Recovery.lost`).

    It opens all lines: claims shut them again.
    """
    known = set(connection.execute(QUERIES["keys"]))
    if connection.execute(MISCOUNTED).fetchone()[0]:
        reason = "they were not those of the jobs, which were counted again"
        note_again(connection, Misfit("queue_counts", "all", reason, now))
        connection.execute(QUERIES["forget_counts"])
        connection.execute(OF_QUARANTINE["count_jobs"])
    connection.execute(QUERIES["open_every_line"])
    for statement in of_rooms:
        connection.execute(statement, {"now": now})
    for source, key, reason, at in connection.execute(QUERIES["noted"], {"now": now}).fetchall():
        if (source, key) not in known:
            yield Misfit(source, key, reason, at)


def refused_jobs(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Find the jobs that their own table would refuse: the key of each, and why.

    A connection that cannot write does not know the rules of its tables. So jobs are copied into a
    temporary table that is like theirs. It takes about 3 µs a job.
    """
    found: list[tuple[int, str]] = []
    (sql,) = connection.execute(QUERIES["table"], {"name": "jobs"}).fetchone()
    names = ", ".join(row[1] for row in connection.execute("PRAGMA main.table_info(jobs)"))
    copy = f"INSERT INTO temp.jobs ({names}) SELECT {names} FROM main.jobs WHERE id"
    some = "SELECT id FROM main.jobs WHERE id > ? ORDER BY id LIMIT ?"
    last = -(2**63)
    connection.execute(sql.replace("TABLE", "TEMP TABLE", 1))
    try:
        while keys := [key for (key,) in connection.execute(some, (last, JUDGED))]:
            last = keys[-1]
            try:
                connection.execute(f"{copy} BETWEEN ? AND ?", (keys[0], last))
            except sqlite3.IntegrityError:
                for key in keys:
                    try:
                        connection.execute(f"{copy} = ?", [key])
                    except sqlite3.IntegrityError as error:
                        found.append((key, _reason_of(error)))
            connection.execute("DELETE FROM temp.jobs")
    finally:
        connection.execute("DROP TABLE temp.jobs")
    return found


@cache
def _forms() -> dict[tuple[str, str], msgspec.json.Decoder[Any]]:
    """What reads columns that have a form, by table and column."""
    found: dict[tuple[str, str], msgspec.json.Decoder[Any]] = {}
    for forms in (_FORMS, *parts("store", "FORMS", dict)):
        for table, columns in forms.items():
            for name, kind in columns.items():
                found[table, name] = msgspec.json.Decoder(kind, strict=False)
    return found


def _unreadable_in(
    connection: sqlite3.Connection, rules: sqlite3.Connection, table: str
) -> Iterator[UnreadableRow]:
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    names = [name for _, name, *_ in columns]
    texts = {name for _, name, kind, *_ in columns if kind in ("TEXT", "ANY")}
    # Texts are read as bytes: one that is no UTF-8 must not end the reading.
    shown = [f"CAST({name} AS BLOB)" if name in texts else name for name in names]
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    keys = keys_of(connection, table)
    for row in connection.execute(f"SELECT {', '.join(shown)} FROM {table}"):
        values = dict(zip(names, row, strict=True))
        read = dict(values)
        try:
            for name in texts:
                if values[name] is not None:
                    read[name] = str(values[name], "utf-8")
            for name in names:
                decoder = _forms().get((table, name))
                if decoder is not None and read[name] not in (None, ""):
                    decoder.decode(str(read[name]))
            if table == "meta" and read["name"] == "former_suffixes":
                check_meta(read["name"], read["value"])
            if any(isinstance(read[name], int) and read[name] < 0 for name in keys):
                raise msgspec.ValidationError("its key is negative")
            rules.execute(insert, list(read.values()))
        except (sqlite3.IntegrityError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            yield UnreadableRow(table, {name: values[name] for name in keys}, _reason_of(error))
        rules.execute(f"DELETE FROM {table}")


def _reason_of(error: Exception) -> str:
    """Why a row cannot be read."""
    if isinstance(error, sqlite3.IntegrityError):
        return f"the row breaks a rule of its table: {error}"
    return reason_of("the row", error)
