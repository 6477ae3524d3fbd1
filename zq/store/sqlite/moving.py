"""A data directory as one side of a move."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from zq.private import open_private
from zq.store.errors import DamagedDatabase, DatabaseTooOld, StoreError, StoreFull
from zq.store.moving import MARK, MovedTable, MoveSide, MoveTarget, Row
from zq.store.sqlite.connection import PAGE_BYTES, disk_error, is_full, store_errors
from zq.store.sqlite.damage import damage_of_log
from zq.store.sqlite.files import (
    FILE_NAME,
    MOVING_NAME,
    WAL_NAME,
    connected,
    opened_unchanged,
)
from zq.store.sqlite.identity import QUERIES, check_meta, lost_in, read_meta, rewrite_meta
from zq.store.sqlite.lock import DirectoryLock, locked_unchanged, sync_directory
from zq.store.sqlite.migrate import latest_version, migrate, refuse_foreign, refuse_newer
from zq.store.sqlite.restore import refuse_content

_PRAGMAS = {
    # A log without other users needs no shared memory, for which a full disk has no space.
    "locking_mode": "EXCLUSIVE",
    "page_size": PAGE_BYTES,
    "auto_vacuum": "INCREMENTAL",
    # A slice that was written is there after a power cut, or nothing of it is.
    "journal_mode": "WAL",
    "synchronous": "NORMAL",
}

_BYTES = {("log_batches", "body")}
"""The columns of bytes that hold JSON: other stores have texts there."""


@contextmanager
def source(place: str) -> Iterator["SqliteSide"]:
    """Lock the directory of a stopped server, and read it without changing a byte in it.

    Raises `DirectoryInUse`, `ForeignDatabase`, `DatabaseTooNew`, `DatabaseTooOld`,
    `DamagedDatabase`, `StoreError` or OSError.
    """
    directory = Path(place)
    with locked_unchanged(directory), opened_unchanged(directory) as connection:
        lost = damage_of_log(directory / WAL_NAME)
        if lost is not None and not lost.is_torn:
            raise DamagedDatabase(str(lost))
        try:
            refuse_foreign(connection)
            if refuse_newer(connection) < latest_version():
                raise DatabaseTooOld(
                    "an older version of zq wrote it: start `zq serve` of this version once, and"
                    " stop it again"
                )
            meta = read_meta(connection)
            if reason := lost_in(meta):
                raise DamagedDatabase(f"{reason}: `zq salvage` saves what can be read")
            check_meta("former_suffixes", meta.get("former_suffixes", "[]"))
            yield SqliteSide(connection)
        except (sqlite3.DatabaseError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            failed = isinstance(error, sqlite3.Error) and disk_error(error, connection)
            raise failed or DamagedDatabase(
                f"it cannot be read ({error}): `zq check` says what is damaged, and `zq salvage`"
                " saves what can be read"
            ) from None


@contextmanager
def target(place: str) -> Iterator["SqliteTarget"]:
    """Lock a directory without a database, and make one in it.

    The database gets its name if it is complete at the end of the block. Otherwise the next move
    finds it. Raises `DirectoryInUse`, `DirectoryNotEmpty`, `StoreError` or OSError.
    """
    directory = Path(place)
    lock = DirectoryLock(directory)
    try:
        refuse_content(directory, MOVING_NAME)
        file = directory / MOVING_NAME
        os.close(open_private(file, os.O_WRONLY | os.O_CREAT))
        with connected(file) as connection:
            with store_errors(connection):
                for name, value in _PRAGMAS.items():
                    connection.execute(f"PRAGMA {name} = {value}")
                migrate(connection)
            filled = SqliteTarget(connection)
            yield filled
            with store_errors(connection):
                # Without a log, the file is all there is.
                connection.execute("PRAGMA journal_mode = DELETE")
        if filled.is_complete:
            _name(file)
    finally:
        lock.release()


class SqliteSide(MoveSide):
    """An open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tables = list(_tables(connection))

    def meta(self) -> dict[str, str]:
        found = self._connection.execute(QUERIES["read_meta"])
        return {name: str(value) for name, value in found}

    def count(self, table: MovedTable) -> int:
        found: tuple[int] = self._connection.execute(
            f"SELECT count(*) FROM {table.name}"
        ).fetchone()
        return found[0]

    def rows(self, table: MovedTable, after: Row | None = None) -> Iterator[Row]:
        names = [_read(table.name, name) for name in table.columns]
        key = ", ".join(map(_quoted, table.columns[: table.width]))
        beyond = f" WHERE ({key}) > ({_marks(table.width)})" if after else ""
        sql = f"SELECT {', '.join(names)} FROM {table.name}{beyond} ORDER BY {key}"
        yield from self._connection.execute(sql, after or ())

    def highest_key(self) -> int:
        highest: int = self._connection.execute(QUERIES["highest_key"]).fetchone()[0]
        return highest


class SqliteTarget(SqliteSide, MoveTarget):
    """A database that is filled."""

    is_complete = False

    def empty(self, mark: str) -> None:
        with self._written():
            for table in self.tables:
                self._connection.execute(f"DELETE FROM {table.name}")
            rewrite_meta(self._connection, {MARK: mark})

    def write(self, table: MovedTable, rows: Sequence[Row], mark: str) -> None:
        names = ", ".join(map(_quoted, table.columns))
        values = ", ".join(_written_as(table.name, name) for name in table.columns)
        with self._written():
            insert = f"INSERT INTO {table.name} ({names}) VALUES ({values})"
            self._connection.executemany(insert, rows)
            rewrite_meta(self._connection, {MARK: mark})

    def complete(self, meta: Mapping[str, str]) -> None:
        with self._written():
            self._connection.execute("DELETE FROM meta")
            rewrite_meta(self._connection, meta)
        self.is_complete = True

    @contextmanager
    def _written(self) -> Iterator[None]:
        """A transaction. Raises `StoreError`."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            kind = StoreFull if is_full(error, self._connection) else StoreError
            raise kind(str(error)) from error


def _tables(connection: sqlite3.Connection) -> Iterator[MovedTable]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name <> 'meta' ORDER BY name"
    ).fetchall()
    for (name,) in names:
        found = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
        stored = [(place, column) for _, column, _, _, _, place, hidden in found if not hidden]
        key = [column for place, column in sorted(stored) if place]
        rest = sorted(column for place, column in stored if not place)
        yield MovedTable(name, (*key, *rest), len(key))


def _read(table: str, column: str) -> str:
    name = _quoted(column)
    return f"CAST({name} AS TEXT)" if (table, column) in _BYTES else name


def _written_as(table: str, column: str) -> str:
    return "CAST(? AS BLOB)" if (table, column) in _BYTES else "?"


def _quoted(column: str) -> str:
    return f'"{column}"'


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _name(file: Path) -> None:
    """Give a complete database its name, on the disk too."""
    with file.open("rb") as written:
        os.fsync(written.fileno())
    file.rename(file.with_name(FILE_NAME))
    sync_directory(file.parent)
