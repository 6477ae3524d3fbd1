"""A snapshot of a SQLite store: a connection, and the texts of the queries of a room."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any

import msgspec

from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.store.api import as_json
from zq.store.snapshot import NO_WORDS, Snapshot
from zq.store.sqlite import lookups
from zq.store.sqlite.quarantine import UnreadableRows, is_unreadable
from zq.store.sqlite.where import where


class SqliteSnapshot(Snapshot):
    """What the transaction of a connection sees."""

    def __init__(self, texts: Mapping[str, str], connection: sqlite3.Connection) -> None:
        super().__init__(texts)
        self._connection = connection

    def rows(self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any) -> Any:
        return self._connection.execute(self._sql(query, words), _bound(parameters)).fetchall()

    def each(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> Iterator[Any]:
        sql = self._sql(query, words)
        with closing(self._connection.execute(sql, _bound(parameters))) as rows:
            yield from rows

    def found(
        self, kind: Any, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[Any]:
        text = lookups.text_of(self._connection, self._sql(query, words), _bound(parameters))
        found: list[Any] = _decoder(kind).decode(text)
        return found

    def jobs(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[JobRecord]:
        return lookups.found_jobs(self._connection, self._sql(query, words), _bound(parameters))

    def whole(self, query: str, /, **parameters: Any) -> list[JobRecord]:
        return lookups.whole_jobs(self._connection, self._texts[query], _bound(parameters))

    def where(
        self, filter: Filter, hide_purged_at: int | None = None
    ) -> tuple[str, dict[str, object]]:
        return where(filter, hide_purged_at)

    def row(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        return lookups.get_row(self._connection, key, reach, now)

    def settings(self, queue: str) -> QueueSettings:
        return lookups.settings(self._connection, queue)

    def blame(
        self, error: Exception, filter: Filter, after: int, descending: bool, limit: int, now: int
    ) -> None:
        if is_unreadable(error):
            page = (filter, after, descending, limit, now)
            jobs = lookups.list_jobs(self._connection, *page)
            lookups.last_errors(self._connection, [job.key for job in jobs])

    def unreadable(self, table: str, keys: Sequence[object]) -> Exception:
        return UnreadableRows(table, keys)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[list[Any]]:
    return msgspec.json.Decoder(list[kind])


def _bound(parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        name: as_json(value) if isinstance(value, (list, tuple)) else value
        for name, value in parameters.items()
    }
