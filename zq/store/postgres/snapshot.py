"""A snapshot of a store on PostgreSQL: a connection, and texts of queries.

PostgreSQL checks its pages itself, so rows have no checksum here, and what cannot be read is not
set aside.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import msgspec

from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.rooms import parts
from zq.store.errors import StoreDamaged
from zq.store.postgres.connection import Connection
from zq.store.postgres.queries import jobs_of, load, rows_of
from zq.store.postgres.where import Finds, is_listed_by_status, where
from zq.store.snapshot import NO_WORDS, MakeReads, Snapshot, flat, reads_by

CORE = load("zq.store.postgres.lookups") | load("zq.store.postgres.log")
"""The texts of the core's queries."""


class PostgresSnapshot(Snapshot):
    """What the transaction of a connection sees."""

    def __init__(self, texts: Mapping[str, str], connection: Connection) -> None:
        super().__init__(texts)
        self._connection = connection

    @property
    def core(self) -> Snapshot:
        return PostgresSnapshot(CORE, self._connection)

    def rows(self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any) -> Any:
        return rows_of(self._connection, self._sql(query, words), parameters)

    def each(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> AbstractContextManager[Iterable[Any]]:
        return nullcontext(self.rows(query, words, **parameters))

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

    def bodies(self, table: str, keys: Sequence[int]) -> dict[int, str]:
        return dict(self.core.rows(table, keys=keys))

    def where(
        self, filter: Filter, hide_purged_at: int | None = None, *, by_time: bool = False
    ) -> tuple[str, dict[str, object]]:
        return where(filter, hide_purged_at, Finds.AT_ALL if by_time else Finds.IN_ORDER)

    def listing(
        self, query: str, filter: Filter, hide_purged_at: int | None = None
    ) -> tuple[str, str, dict[str, object]]:
        if is_listed_by_status(filter):
            return f"{query}_by_status", *where(filter, hide_purged_at, Finds.BY_STATUS)
        return query, *where(filter, hide_purged_at)

    def blame(
        self, error: Exception, filter: Filter, after: int, descending: bool, limit: int, now: int
    ) -> None:
        """Nothing can be blamed."""

    def reading_errors(self, keys: Sequence[int]) -> AbstractContextManager[None]:
        return nullcontext()

    def unreadable(self, table: str, keys: Sequence[object]) -> Exception:
        return StoreDamaged(f"rows of {table} cannot be read: {', '.join(map(str, keys))}")


@cache
def reads_of_rooms() -> dict[type, MakeReads]:
    """How the reads of each room are made, by the class that says what they are."""
    shared = parts("store", "READS", tuple)
    own = parts("postgres_reads", "READS", dict)
    return reads_by("postgres", shared, own, load, PostgresSnapshot)
