"""A snapshot of a SQLite store: a connection, and texts of queries."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from typing import Any

import msgspec

from zq.model.checksums import check_jobs, fits
from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.rooms import parts
from zq.store import lookups
from zq.store.api import as_json
from zq.store.snapshot import NO_WORDS, MakeReads, Snapshot, reads_by
from zq.store.sqlite.connection import is_corrupt
from zq.store.sqlite.quarantine import ON_PAGE, UnreadableRows, is_unreadable, keys_query
from zq.store.sqlite.queries import load
from zq.store.sqlite.where import where

CORE = load("zq.store.sqlite.lookups") | load("zq.store.sqlite.log")
"""The texts of the core's queries."""

_ERRORS = "SELECT * FROM errors WHERE job_id IN (SELECT value FROM json_each(:keys))"

_jobs = msgspec.json.Decoder(list[JobRecord])
_keys = msgspec.json.Decoder(list[int])


class SqliteSnapshot(Snapshot):
    """What the transaction of a connection sees. Rows that are not what was stored are named."""

    def __init__(self, texts: Mapping[str, str], connection: sqlite3.Connection) -> None:
        super().__init__(texts)
        self._connection = connection

    @property
    def core(self) -> Snapshot:
        return SqliteSnapshot(CORE, self._connection)

    def rows(self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any) -> Any:
        return self._connection.execute(self._sql(query, words), _bound(parameters)).fetchall()

    def each(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> AbstractContextManager[Iterable[Any]]:
        # A cursor that stays open would keep its moment for the next read.
        return closing(self._connection.execute(self._sql(query, words), _bound(parameters)))

    def found(
        self, kind: Any, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[Any]:
        text = self._text(self._sql(query, words), _bound(parameters))
        found: list[Any] = _decoder(kind).decode(text)
        return found

    def jobs(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[JobRecord]:
        sql, values = self._sql(query, words), _bound(parameters)
        try:
            jobs = _jobs.decode(self._text(sql, values))
            check_jobs(jobs)
            return jobs
        except Exception as error:
            if not is_unreadable(error):
                raise
        raise UnreadableRows("jobs", _keys.decode(self._text(keys_query(sql), values)))

    def bodies(self, table: str, keys: Sequence[int]) -> dict[int, str]:
        return read_bodies(self._connection, table, keys)

    def where(
        self, filter: Filter, hide_purged_at: int | None = None, *, by_time: bool = False
    ) -> tuple[str, dict[str, object]]:
        return where(filter, hide_purged_at, by_time=by_time)

    def blame(
        self, error: Exception, filter: Filter, after: int, descending: bool, limit: int, now: int
    ) -> None:
        if is_unreadable(error):
            jobs = lookups.list_jobs(self.core, filter, after, descending, limit, now)
            lookups.last_errors(self.core, [job.key for job in jobs])

    @contextmanager
    def reading_errors(self, keys: Sequence[int]) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not is_unreadable(error):
                raise
            if not (isinstance(error, sqlite3.DatabaseError) and is_corrupt(error)):
                raise UnreadableRows("errors", keys) from None
        else:
            return
        on_page = [key for key in keys if is_on_bad_page(self._connection, _ERRORS, as_json([key]))]
        raise UnreadableRows(f"{ON_PAGE}errors", on_page)

    def unreadable(self, table: str, keys: Sequence[object]) -> Exception:
        return UnreadableRows(table, keys)

    def _text(self, sql: str, parameters: dict[str, Any]) -> str:
        """The one text that a query answers."""
        text: str = self._connection.execute(sql, parameters).fetchone()[0]
        return text


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[list[Any]]:
    return msgspec.json.Decoder(list[kind])


def _bound(parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        name: as_json(value) if isinstance(value, (list, tuple)) else value
        for name, value in parameters.items()
    }


def is_on_bad_page(connection: sqlite3.Connection, sql: str, keys: str) -> bool:
    """True if a query for the rows of some keys meets a page that cannot be read."""
    try:
        connection.execute(sql, {"keys": keys}).fetchall()
    except sqlite3.DatabaseError as error:
        return is_corrupt(error)
    return False


def read_bodies(connection: sqlite3.Connection, name: str, keys: Sequence[int]) -> dict[int, str]:
    """Large `payloads` or `results` by key. Deleted jobs are missing."""
    try:
        return _fitting(connection, name, keys)
    except sqlite3.DatabaseError as error:
        if not is_unreadable(error):
            raise
        if not is_corrupt(error):
            raise UnreadableRows("jobs", keys) from None
    bad = [key for key in keys if is_on_bad_page(connection, CORE[name], as_json([key]))]
    if left := _existing(connection, bad):
        raise UnreadableRows(f"{ON_PAGE}{name}", left)
    return _fitting(connection, name, [key for key in keys if key not in set(bad)])


def _fitting(connection: sqlite3.Connection, name: str, keys: Sequence[int]) -> dict[int, str]:
    """Bodies by key. Raises `UnreadableRows` if some are not what was stored."""
    rows = connection.execute(CORE[name], {"keys": as_json(keys)}).fetchall()
    found = {key: body for key, body, stored in rows if fits(body, stored)}
    if len(found) < len(rows):
        bad = [key for key, _, _ in rows if key not in found]
        if left := _existing(connection, bad):
            raise UnreadableRows("jobs", left)
    return found


def _existing(connection: sqlite3.Connection, keys: Sequence[int]) -> list[int]:
    """The jobs, among some, that still exist. What lies beside one that has gone interests
    nobody."""
    some = {"keys": as_json(keys)}
    return [key for (key,) in connection.execute(CORE["existing"], some)]


@cache
def reads_of_rooms() -> dict[type, MakeReads]:
    """How the reads of each room are made, by the class that says what they are."""
    shared = parts("store", "READS", tuple)
    own = parts("sqlite_reads", "READS", dict)
    return reads_by("sqlite", shared, own, load, SqliteSnapshot)
