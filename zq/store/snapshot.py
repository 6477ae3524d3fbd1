"""Reads that are the same on every store: functions of a snapshot, which runs queries by name.

A room has them in its `store.py`. The texts of their queries are in the room's `reads.sql`, and in
`sqlite_reads.sql` or `postgres_reads.sql` where the stores differ. Each store makes moments of its
own, and runs the functions in its lanes.
"""

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.store.lanes import Dates
from zq.store.texts import texts_of_room

PAGE_BYTES = 16 * 1024 * 1024
"""The limit for payloads and results in one page of a listing, in bytes. A page at this limit ends
early and has a `next`."""

P = ParamSpec("P")
T = TypeVar("T")

NO_WORDS: Mapping[str, str] = {}

ANY_TABLE = "some table"
"""The table of a row that is in one of those beside jobs: it has to be looked for."""

MakeReads = Callable[[Any], Any]
"""Makes the reads of a room by the lanes of a store."""


class Snapshot(ABC):
    """A store at one moment, in the thread of a reader. Its queries are run by their names.

    Lists and tuples among the parameters of a query are passed as a whole. `words` are words of a
    query's text, and what they stand for.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    @property
    @abstractmethod
    def core(self) -> "Snapshot":
        """This moment with the core's queries, for the functions of `zq.store.lookups`."""

    @abstractmethod
    def rows(self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any) -> Any:
        """The rows that a query finds, each a tuple: a list."""

    @abstractmethod
    def each(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> AbstractContextManager[Iterable[Any]]:
        """The rows that a query finds, one by one, for a block that stops when it has enough."""

    @abstractmethod
    def found(
        self, kind: type[T], query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[T]:
        """The rows that a query finds, each as a value of this kind; of one column, its value.

        SQLite makes one JSON of them, which is one step for a thread however many they are.
        """

    @abstractmethod
    def jobs(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[JobRecord]:
        """The jobs that a query finds, without bodies that are stored apart."""

    @abstractmethod
    def bodies(self, table: str, keys: Sequence[int]) -> dict[int, str]:
        """The large `payloads` or `results` of some jobs by key. Deleted jobs are missing."""

    @abstractmethod
    def where(
        self, filter: Filter, hide_purged_at: int | None = None, *, by_time: bool = False
    ) -> tuple[str, dict[str, object]]:
        """A filter as conditions over `jobs`, and their parameters.

        With `hide_purged_at` (now, in milliseconds) no job matches whose retention is over. A query
        that needs no order may be faster `by_time`.
        """

    def listing(
        self, query: str, filter: Filter, hide_purged_at: int | None = None
    ) -> tuple[str, str, dict[str, object]]:
        """The name of the query that lists the jobs of a filter, and what `where` returns for it.

        It is `query`, unless the store has another one for such a filter.
        """
        return query, *self.where(filter, hide_purged_at)

    @abstractmethod
    def blame(
        self, error: Exception, filter: Filter, after: int, descending: bool, limit: int, now: int
    ) -> None:
        """If some of these jobs cannot be read, raise an error that says which, for this one."""

    @abstractmethod
    def reading_errors(self, keys: Sequence[int]) -> AbstractContextManager[None]:
        """If the errors of these jobs are not what was stored, raise an error that says so."""

    @abstractmethod
    def unreadable(self, table: str, keys: Sequence[object]) -> Exception:
        """The error that these rows of a table are not what was stored."""

    def whole(
        self, query: str, words: Mapping[str, str] = NO_WORDS, /, **parameters: Any
    ) -> list[JobRecord]:
        """The jobs that a query finds, with payloads and results, as many as fit in a page."""
        jobs = _first_bytes(self.jobs(query, words, **parameters))
        payloads = self.beside("payloads", [job.key for job in jobs if job.payload is None])
        results = self.beside("results", [job.key for job in jobs if job.result_beside])
        for job in jobs:
            if job.payload is None:
                job.payload = payloads[job.key]
            if job.result_beside:
                job.result = results[job.key]
        return jobs

    def beside(self, table: str, keys: Sequence[int]) -> dict[int, str]:
        """The large `payloads` or `results` of jobs that have one."""
        found = self.bodies(table, keys) if keys else {}
        if missing := [key for key in keys if key not in found]:
            raise self.unreadable("jobs", missing)
        return found

    def text(self, name: str) -> str:
        """A text by its name, which is a part of others."""
        return self._texts[name]

    def value(self, query: str, /, **parameters: Any) -> Any:
        """The first value that a query finds; None if it finds no row."""
        found = self.rows(query, **parameters)
        return found[0][0] if found else None

    def _sql(self, query: str, words: Mapping[str, str]) -> str:
        sql = self._texts[query]
        for word, meaning in words.items():
            sql = sql.replace(word, meaning)
        return sql


class SnapshotLane:
    """Reads of one kind: functions of a snapshot, and what is passed to them behind it."""

    def __init__(
        self, read: Callable[..., Coroutine[Any, Any, Any]], snapshot: Callable[[Any], Snapshot]
    ) -> None:
        """`read` runs a function of a connection, and `snapshot` makes one from a connection."""
        self._read = read
        self._moment = snapshot

    def __call__(
        self, function: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Run a function. All its queries see one moment. Raises what `Reads` raise."""
        snapshot = self._moment
        return self._read(lambda connection: function(snapshot(connection), *args, **kwargs))

    def found(
        self, kind: type[T], query: str, /, **parameters: Any
    ) -> Coroutine[Any, Any, list[T]]:
        """What one query finds: see `Snapshot.found`."""
        snapshot = self._moment
        return self._read(lambda connection: snapshot(connection).found(kind, query, **parameters))

    async def first(self, kind: type[T], query: str, /, **parameters: Any) -> T | None:
        """The first row that one query finds, as a value of this kind."""
        found = await self.found(kind, query, **parameters)
        return found[0] if found else None

    def value(self, query: str, /, **parameters: Any) -> Coroutine[Any, Any, Any]:
        """The first value that one query finds; None if it finds no row."""
        snapshot = self._moment
        return self._read(lambda connection: snapshot(connection).value(query, **parameters))


class SnapshotLanes(Dates):
    """The lanes of a store. A read uses the one in which it delays no shorter read."""

    def __init__(self, lanes: Any, snapshot: Callable[[Any], Snapshot]) -> None:
        super().__init__(lanes.steady)
        self.looks = SnapshotLane(lanes.looks, snapshot)
        self.scans = SnapshotLane(lanes.scans, snapshot)
        self.sweeps = SnapshotLane(lanes.sweeps, snapshot)
        self.deliveries = SnapshotLane(lanes.deliveries, snapshot)
        self.views = SnapshotLane(lanes.views, snapshot)
        self.pages = SnapshotLane(lanes.pages, snapshot)
        self.followers = SnapshotLane(lanes.followers, snapshot)


def reads_by(
    store: str,
    shared: Iterable[tuple[type, ...]],
    own: Iterable[dict[type, MakeReads]],
    load: Callable[[str], dict[str, str]],
    snapshot: Callable[[Mapping[str, str], Any], Snapshot],
) -> dict[type, MakeReads]:
    """How the reads of each room are made in a store, by the class that says what they are.

    `shared` are the classes that serve every store. A room's `own` reads of this store are found
    by a class that says what they are. `load` reads the texts of one file, and `snapshot` is made
    of them and a connection.
    """

    def of_snapshots(make: Callable[[SnapshotLanes], Any]) -> MakeReads:
        room = make.__module__.removesuffix(".store")
        # Some are those of its tick.
        texts = texts_of_room(store, room, load) | load(f"{room}.{store}_reads")
        return lambda lanes: make(SnapshotLanes(lanes, partial(snapshot, texts)))

    same = {kind: of_snapshots(kind) for kinds in shared for kind in kinds}
    return same | dict(ChainMap(*own))


def _first_bytes(jobs: list[JobRecord]) -> list[JobRecord]:
    """The first jobs whose bodies together fit in a page; at least one job."""
    total = 0
    for index, job in enumerate(jobs):
        total += job.weight
        if total > PAGE_BYTES and index:
            return jobs[:index]
    return jobs


def flat(rows: Sequence[Sequence[T]]) -> list[T]:
    """The values of rows that have one each."""
    return [value for (value,) in rows]
