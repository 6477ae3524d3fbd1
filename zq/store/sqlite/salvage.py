"""Reads whatever can be read of a damaged database into a new one, for `zq salvage`."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from zq.store.errors import DamagedDatabase, DatabaseTooNew
from zq.store.sqlite.checksums import unfit_rows
from zq.store.sqlite.connection import PAGE_BYTES, store_errors
from zq.store.sqlite.damage import damage_of_log, damaged_header
from zq.store.sqlite.files import (
    FILE_NAME,
    WAL_NAME,
    connected,
    copy_files,
    create_private,
    opened_unchanged,
)
from zq.store.sqlite.identity import check_meta
from zq.store.sqlite.lock import locked_unchanged
from zq.store.sqlite.mending import lead_back, set_aside_unreadable
from zq.store.sqlite.migrate import migrate, refuse_foreign, refuse_newer
from zq.store.sqlite.quarantine import QUERIES, keys_of, set_aside, set_aside_jobs
from zq.store.sqlite.queries import load
from zq.store.sqlite.restore import Progress, preparing, refuse_full
from zq.store.sqlite.transaction import recoveries, run_all
from zq.store.sqlite.wal import InvalidHeader, refuse_bad_header, replay

LINES = load("zq.store.sqlite.lines")

FARTHEST = 1 << 62

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""The errors of a damaged database. A message of SQLite's may quote text that is no UTF-8."""

_PAGE_SIZES = frozenset(1 << power for power in range(9, 16))

_DERIVED = "queue_counts"
"""This table is counted anew."""

_BODILESS = """
    SELECT id FROM jobs
    WHERE payload IS NULL AND id NOT IN (SELECT job_id FROM payloads)
        OR result_size > 512 AND id NOT IN (SELECT job_id FROM results)
"""

Row = tuple[Any, ...]


class Salvaged(NamedTuple):
    """The result of a salvage."""

    rows: dict[str, int]
    """How many rows of each table are in the new database; tables without rows are missing."""
    gaps: dict[str, int]
    """How often rows of a table could not be read, or were refused by the new database."""
    set_aside: int
    """How many rows were set aside: jobs whose payload or result is lost, jobs that break a rule of
    their table, and rows whose texts do not have the checksum that was stored with them."""
    log: str | None
    """How the old log is damaged, if changes in it are lost."""


class _Text(bytes):
    """A text that is not decoded yet: one that is no UTF-8 must not end the reading."""


def salvage(old: Path, new: Path, now: int, progress: Progress) -> Salvaged:
    """Make `new`, which has no database, a data directory with all that can be read in `old`.

    `old` is not changed. Jobs keep their ids; those in flight are ready. Raises `DirectoryInUse`,
    `DirectoryNotEmpty`, `ForeignDatabase`, `DatabaseTooNew`, `StoreError` (such as `StoreFull`),
    OSError, or `DamagedDatabase` if nothing can be read.
    """
    size = (old / FILE_NAME).stat().st_size
    with (
        locked_unchanged(old),
        preparing(new) as file,
        _opened(old) as (source, lost),
    ):
        refuse_full(new, size - _free_bytes(source))
        create_private(file).close()
        with connected(file) as target, store_errors(target):
            # The whole file is synced before it gets its name.
            for pragma in ("auto_vacuum = INCREMENTAL", "synchronous = OFF"):
                target.execute(f"PRAGMA {pragma}")
            found = _Salvage(source, target, size, progress).run(now)
            return found._replace(log=lost)


@contextmanager
def _opened(old: Path) -> Iterator[tuple[sqlite3.Connection, str | None]]:
    """A connection to what can be read, and the damage by which changes in the log are lost."""
    wal = old / WAL_NAME
    try:
        refuse_bad_header(wal)
    except InvalidHeader:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="zq-") as folder:
            copy = Path(folder)
            copy_files(old, copy)
            found = replay(copy / WAL_NAME, copy / FILE_NAME, _page_bytes(copy / FILE_NAME))
            (copy / WAL_NAME).unlink()
            many = found.frames - found.recovered
            lost = f"{damaged_header(wal).what}, and {many} of its {found.frames} pages do not fit"
            with opened_unchanged(copy) as connection:
                yield connection, lost if many else None
        return
    damage = damage_of_log(wal)
    with opened_unchanged(old) as connection:
        yield connection, damage and damage.what


class _Salvage:
    """One salvage, from an open database into a new one."""

    def __init__(
        self, source: sqlite3.Connection, target: sqlite3.Connection, size: int, progress: Progress
    ) -> None:
        source.text_factory = _Text
        # Without this, SQLite reads nothing of a file whose end is missing.
        source.execute("PRAGMA writable_schema = ON")
        self._source = source
        self._target = target
        self._size = size
        self._progress = progress
        self._bytes = 0
        self._rows: dict[str, int] = {}
        self._gaps: dict[str, int] = {}
        self._refused: list[tuple[str, str, str, str]] = []
        """The rows that break a rule of their table: source, key, reason, statement."""

    def run(self, now: int) -> Salvaged:
        """Fill the new database."""
        try:
            version = _version(self._source)
        except UNREADABLE as error:
            raise DamagedDatabase(f"nothing in it can be read: {error}") from None
        migrate(self._target, version)
        self._target.execute("BEGIN")
        tables = self._target.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for (table,) in tables:
            if table != _DERIVED:
                self._copy(table)
        self._target.execute(QUERIES["count_jobs"])
        self._target.execute("COMMIT")
        migrate(self._target)
        self._target.execute("BEGIN")
        bodiless = [key for (key,) in self._target.execute(_BODILESS)]
        for refused in self._refused:
            self._target.execute(QUERIES["keep"], (*refused, now))
        aside = len(self._refused) + len([*set_aside_jobs(self._target, bodiless, now)])
        for source, key in [*unfit_rows(self._target)]:
            if source == "jobs":
                aside += len([*set_aside_jobs(self._target, [key], now)])
            else:
                aside += len([*set_aside(self._target, source, [key], now)])
        aside += len([*set_aside_unreadable(self._target, now), *lead_back(self._target, now)])
        (torn,) = self._target.execute(LINES["torn_lines"]).fetchone()
        self._target.execute(LINES["refresh_lines"], {"lines": torn})
        for room in recoveries():
            run_all(self._target, room.lost, {"now": now})
        self._target.execute("COMMIT")
        return Salvaged(self._rows, self._gaps, aside, log=None)

    def _copy(self, table: str) -> None:
        found = self._target.execute(f"PRAGMA table_info({table})").fetchall()
        columns = [name for _, name, *_ in found]
        key = keys_of(self._target, table)
        # A new database has a few rows, such as its identity: they stay if the old ones are lost.
        has_rows = self._target.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0]
        head = f"INSERT OR {'REPLACE' if has_rows else 'IGNORE'} INTO {table}"
        insert = f"{head} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        for row in self._read(table, columns, key):
            self._store(table, insert, columns, row)

    def _store(self, table: str, insert: str, columns: Sequence[str], row: Row) -> None:
        try:
            values = [str(v, "utf-8") if isinstance(v, _Text) else v for v in row]
            if table == "meta":
                check_meta(**dict(zip(columns, values, strict=True)))
            self._bytes += sum([len(v) for v in values if isinstance(v, str | bytes)]) + 8
            stored = self._target.execute(insert, values).rowcount
            if not stored and table == "jobs" and values[columns.index("owns_key")]:
                # Another job has its unique key.
                values[columns.index("owns_key")] = 0
                stored = self._target.execute(insert, values).rowcount
            if not stored and table == "jobs" and self._is_refused(columns, values):
                return
        except (UnicodeDecodeError, msgspec.MsgspecError, sqlite3.IntegrityError, OverflowError):
            stored = 0
        count = self._rows if stored else self._gaps
        count[table] = count.get(table, 0) + 1
        self._progress(min(self._bytes, self._size), self._size)

    def _is_refused(self, columns: Sequence[str], values: Sequence[Any]) -> bool:
        """True if a job breaks a rule of its table, for which it is kept for the quarantine."""
        insert = f"INSERT INTO jobs ({', '.join(columns)}) VALUES ("
        try:
            self._target.execute(f"{insert}{', '.join('?' * len(columns))})", values)
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_CHECK:
                return False
            quoted = [self._target.execute("SELECT quote(?)", [v]).fetchone()[0] for v in values]
            key = str(values[columns.index("id")])
            reason = f"the row breaks a rule of its table: {error}"
            self._refused.append(("jobs", key, reason, f"{insert}{', '.join(quoted)})"))
        return True

    def _read(self, table: str, columns: Sequence[str], key: Sequence[str]) -> Iterator[Row]:
        select = f"SELECT {', '.join(columns)} FROM {table}"
        if self._is_numbered(table):
            yield from self._read_numbered(table, select, key[0], columns.index(key[0]))
            return
        places = [columns.index(name) for name in key]
        last: Row | None = None
        try:
            for row in self._source.execute(f"{select} ORDER BY {', '.join(key)}"):
                last = tuple(row[place] for place in places)
                yield row
        except UNREADABLE:
            self._note_gap(table)
            yield from self._read_back(select, key, last)

    def _read_numbered(self, table: str, select: str, key: str, place: int) -> Iterator[Row]:
        """The readable rows of a table whose key is a number: those behind each gap too."""

        def can_read(low: int) -> bool:
            sql = f"{select} WHERE {key} > ? ORDER BY {key} LIMIT 1"
            try:
                row = self._source.execute(sql, [low]).fetchone()
            except UNREADABLE:
                return False
            # In a damaged tree, a row may lie where it does not belong.
            return row is None or row[place] > low

        start: int | None = -FARTHEST
        skip = 0
        while start is not None:
            before = start
            try:
                sql = f"{select} WHERE {key} > ? ORDER BY {key}"
                for row in self._source.execute(sql, [start]):
                    start = max(start, row[place])
                    yield row
                return
            except UNREADABLE:
                self._note_gap(table)
            # Rows that lie where they do not belong may hide the next one: each vain try leaves out
            # twice as many keys, so there are few.
            skip = 0 if start > before else max(2 * skip, 1)
            start = _next_readable(can_read, min(start + skip, FARTHEST))

    def _note_gap(self, table: str) -> None:
        self._gaps[table] = self._gaps.get(table, 0) + 1

    def _is_numbered(self, table: str) -> bool:
        """True if the rows lie in the order of one number."""
        sql = self._target.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table])
        return "INTEGER PRIMARY KEY" in sql.fetchone()[0]

    def _read_back(self, select: str, key: Sequence[str], last: Row | None) -> Iterator[Row]:
        """The rows behind the gap, from the end of the table."""
        after, values = _after(key, last)
        order = ", ".join(f"{name} DESC" for name in key)
        try:
            yield from self._source.execute(f"{select} {after} ORDER BY {order}", values)
        except UNREADABLE:
            return


def _free_bytes(source: sqlite3.Connection) -> int:
    """The free pages of a database in bytes, if it tells: they are not copied."""
    try:
        names = ("freelist_count", "page_size")
        pages, size = [source.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    except UNREADABLE:
        return 0
    free: int = pages * size
    return free


def _page_bytes(file: Path) -> int:
    """The size of the pages of a database, by the header of its file."""
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(18)[16:], "big")
    return size if size in _PAGE_SIZES else PAGE_BYTES


def _version(source: sqlite3.Connection) -> int:
    source.text_factory = str
    refuse_foreign(source)
    version = refuse_newer(source)
    source.text_factory = _Text
    if version == 0:
        raise DatabaseTooNew("nothing of zq's is in it")
    return version


def _after(key: Sequence[str], last: Row | None) -> tuple[str, Row]:
    if last is None or not key:
        return "", ()
    marks = ", ".join("?" * len(key))
    values = tuple(str(v, "utf-8") if isinstance(v, _Text) else v for v in last)
    return f"WHERE ({', '.join(key)}) > ({marks})", values


def _next_readable(can_read: Callable[[int], bool], start: int) -> int | None:
    """The lowest key above `start` behind which a row can be read; None if there is none."""
    step = 1
    while not can_read(min(start + step, FARTHEST)):
        if start + step >= FARTHEST:
            return None
        step *= 2
    low, high = start + step // 2, min(start + step, FARTHEST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if can_read(middle) else (middle, high)
    return high
