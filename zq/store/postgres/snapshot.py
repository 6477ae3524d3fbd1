"""A snapshot of a store on PostgreSQL: a connection, and the texts of the queries of a room."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.store.errors import StoreDamaged
from zq.store.postgres import lookups
from zq.store.postgres.connection import Connection
from zq.store.postgres.rows import jobs_of
from zq.store.postgres.where import where
from zq.store.snapshot import NO_WORDS, Snapshot, flat


class PostgresSnapshot(Snapshot):
    """What the transaction of a connection sees."""

    def __init__(self, texts: Mapping[str, str], connection: Connection) -> None:
        super().__init__(texts)
        self._connection = connection

    def rows(self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any) -> Any:
        return lookups.rows_of(self._connection, self._sql(query, words), parameters)

    def each(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> Iterator[Any]:
        return iter(self.rows(query, words, **parameters))

    def found(
        self, kind: Any, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[Any]:
        rows = self.rows(query, words, **parameters)
        if rows and len(rows[0]) == 1:
            rows = flat(rows)
        # Some columns are numbers that stand for booleans, and JSON has numbers as keys.
        return msgspec.convert(rows, list[kind], strict=False)

    def jobs(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[JobRecord]:
        return jobs_of(self.rows(query, words, **parameters))

    def whole(self, query: str, /, **parameters: Any) -> list[JobRecord]:
        return lookups.whole_jobs(self._connection, self.jobs(query, **parameters))

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
        """Nothing: PostgreSQL checks its own pages."""

    def unreadable(self, table: str, keys: Sequence[object]) -> Exception:
        return StoreDamaged(f"rows of {table} cannot be read: {', '.join(map(str, keys))}")
