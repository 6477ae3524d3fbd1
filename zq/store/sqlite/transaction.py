"""The tick's transaction on SQLite: it runs the named statements and decodes their answers."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, TypeVar

import msgspec

from zq.model.checksums import check_jobs
from zq.model.clock import SteadyMark
from zq.model.commands import Deadlines, Due
from zq.model.effects import Effects, Misfit
from zq.model.filters import Filter
from zq.model.job import Brief, JobRecord
from zq.model.leasing import Residents
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings
from zq.rooms import parts
from zq.store.api import (
    Line,
    Recovery,
    SetAsideJob,
    Sliced,
    Transaction,
    exhaust,
)
from zq.store.errors import RowsDiffer, StoreDamaged
from zq.store.snapshot import ANY_TABLE
from zq.store.sqlite.connection import on_bad_page, store_error, store_errors
from zq.store.sqlite.quarantine import (
    OF_JOBS,
    is_unreadable,
    keys_query,
    set_aside,
    set_aside_jobs,
)
from zq.store.sqlite.quarantine import QUERIES as OF_QUARANTINE
from zq.store.sqlite.queries import load, load_of_rooms
from zq.store.sqlite.where import where
from zq.store.texts import merged, merged_lines

_TICK = load("zq.store.sqlite.tick")
_CLAIMS = load("zq.store.sqlite.claims")
_TAKES = {
    f"{name}_from_lines": _CLAIMS[name]
    .replace("SET ", "SET held = 0, line = NULL, ", 1)
    .replace(f":{rows}", f":{rows}_from_lines")
    for name, rows in (("take", "holders"), ("take_on_terms", "leases"))
}
"""Takes of jobs of which some wait in lines."""

QUERIES = {
    **_TICK,
    **_CLAIMS,
    **_TAKES,
    **load("zq.store.sqlite.lines"),
    **load("zq.store.sqlite.settings"),
    **load_of_rooms(),
    **load("zq.store.sqlite.log"),
    "shut_groups_telling": f"{_TICK['shut_groups']} RETURNING id",
    "open_groups_telling": f"{_TICK['open_groups']} RETURNING id",
    "matching": "SELECT json_group_array(id) FROM jobs"
    " WHERE id IN (SELECT value FROM json_each(:slice)) AND CONDITIONS",
}

LARGEST_INSERT = 512
"""At most so many rows go into one INSERT. With 12 columns each, they stay far below SQLite's limit
of 32,766 parameters."""

LARGEST_BYTES = 512 * 1024
"""At most so many bytes of large texts go into one INSERT. A prepared statement keeps its last
parameters in memory. This limit, and the few sizes of statements, keep that small."""

BESIDE = frozenset({"delete_payloads", "delete_results", "delete_errors"})
"""Statements that delete what lies beside a job. Nobody reads it once the job has gone."""

FEW_COUNTS = 4
"""Up to so many counts are written one by one, at a third of the cost of JSON."""

MOST_ARMS = 499
"""One statement can merge so many queues: SQLite compiles compounds of up to 500 arms."""

_AS_JSON = frozenset({list, tuple, dict, set, frozenset, SteadyMark, Residents})

_encode = msgspec.json.Encoder().encode
_briefs = msgspec.json.Decoder(list[Brief]).decode
_jobs = msgspec.json.Decoder(list[JobRecord])
_pairs = msgspec.json.Decoder(list[tuple[int, str]]).decode
_keys = msgspec.json.Decoder(list[int]).decode
_names = msgspec.json.Decoder(list[str]).decode
_table = msgspec.json.Decoder(list[list[Any]]).decode
_lines = msgspec.json.Decoder(list[Line]).decode
_settings = msgspec.json.Decoder(list[tuple[str, QueueSettings]]).decode

T = TypeVar("T")
Parameters = dict[str, Any]


class SqliteTransaction(Transaction):
    """A transaction of the writer's connection, which nothing else uses meanwhile."""

    is_alone = True

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self.rows = 0
        self.misfits: list[Misfit] = []
        self.removed: list[SetAsideJob] = []
        self._connection = connection
        # One cursor for all of them: each that is made costs as much as a twentieth of a commit.
        self._execute = connection.cursor().execute
        self._now = now
        self._spares = False
        """True if what lies beside deleted jobs is left there."""

    @property
    def is_open(self) -> bool:
        return self._connection.in_transaction

    def begin(self) -> None:
        self._do("BEGIN IMMEDIATE")

    def commit(self, durable: bool = True) -> object:
        return self._do("COMMIT")

    def roll_back(self) -> None:
        if self.is_open:
            self._do("ROLLBACK")

    def part(self) -> "SqliteTransaction":
        self._do("SAVEPOINT part")
        part = SqliteTransaction(self._connection, self._now)
        part._spares = self._spares
        return part

    def keep(self) -> None:
        self._do("RELEASE part")

    def undo(self) -> None:
        self._do("ROLLBACK TO part")
        self._do("RELEASE part")

    def run(self, name: str, **parameters: Any) -> int:
        if self._spares and name in BESIDE:
            return 0
        changed = self._do(QUERIES[name], _bound(parameters)).rowcount
        if changed > 0:
            self.rows += changed
        return changed

    def write(self, name: str, expected: int | None = None, /, **parameters: Any) -> None:
        if self._spares and name in BESIDE:
            return
        changed = self._do(QUERIES[name], _bound(parameters)).rowcount
        if changed > 0:
            self.rows += changed
        if expected is not None and changed != expected:
            raise RowsDiffer

    def spare(self) -> None:
        self._spares = True

    def value(self, name: str, **parameters: Any) -> Any:
        row = self._do(QUERIES[name], _bound(parameters)).fetchone()
        return row[0] if row else None

    def rows_of(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._do(QUERIES[name], _bound(parameters)).fetchall()

    def table(self, name: str, **parameters: Any) -> list[list[Any]]:
        return self._found(_table, QUERIES[name], parameters)

    def jobs(self, name: str, **parameters: Any) -> list[JobRecord]:
        return self._found_jobs(QUERIES[name], parameters)

    def briefs(self, name: str, **parameters: Any) -> list[Brief]:
        return self._found(_briefs, QUERIES[name], parameters)

    def pairs(self, name: str, **parameters: Any) -> list[tuple[int, str]]:
        return self._found(_pairs, QUERIES[name], parameters)

    def keys(self, name: str, **parameters: Any) -> list[int]:
        return self._found(_keys, QUERIES[name], parameters)

    def names(self, name: str, **parameters: Any) -> list[str]:
        return self._found(_names, QUERIES[name], parameters)

    def owners(self, locks: Sequence[str]) -> list[JobRecord]:
        return self.jobs_of("read_owners", locks)

    def table_of(self, name: str, values: Sequence[str]) -> list[list[Any]]:
        found: list[list[Any]] = []
        for names in _by_parts(values):
            found += self._found(_table, named(QUERIES[name], names), names)
        return found

    def jobs_of(self, name: str, values: Sequence[str]) -> list[JobRecord]:
        found: list[JobRecord] = []
        for names in _by_parts(values):
            found += self._found_jobs(named(QUERIES[name], names), names)
        return found

    def matching(self, keys: Sequence[int], filter: Filter) -> list[int]:
        conditions, parameters = where(filter)
        query = QUERIES["matching"].replace("CONDITIONS", conditions)
        return self._found(_keys, query, {"slice": keys, **parameters})

    def first_of(
        self, free: Sequence[str], bounds: Mapping[str, int], limit: int
    ) -> list[JobRecord]:
        queues = [*free, *bounds]
        heads: list[JobRecord] = []
        for start in range(0, len(queues), MOST_ARMS):
            part = queues[start : start + MOST_ARMS]
            names: Parameters = {f"q{index}": queue for index, queue in enumerate(part)}
            most = [(index, bounds[queue]) for index, queue in enumerate(part) if queue in bounds]
            names |= {f"m{index}": bound for index, bound in most}
            query = _merged(len(part) - len(most), len(most))
            found = self._found_jobs(query, {"limit": limit, **names})
            heads += found
        if len(queues) > MOST_ARMS:
            heads.sort(key=lambda job: (job.priority, job.key))
        return heads[:limit]

    def open_lines(
        self, queues: Sequence[str] | None, agings: Sequence[int], limit: int, steady: int
    ) -> list[Line]:
        if queues is None and not agings:
            return self._found(_lines, QUERIES["open_lines"], {"limit": limit})
        arm, values = ("line_arm", queues) if queues is not None else ("aging_arm", [0, *agings])
        lines: list[Line] = []
        for start in range(0, len(values), MOST_ARMS):
            part = values[start : start + MOST_ARMS]
            names: Parameters = {f"v{index}": value for index, value in enumerate(part)}
            names |= {"limit": limit, "steady": steady}
            lines += self._found(_lines, _merged_lines(arm, len(part)), names)
        if len(values) > MOST_ARMS:
            lines.sort(key=lambda line: (line.urgency, line.head))
        return lines[:limit]

    def shared_lines(self, queue: str, priority: int, limit: int) -> list[Line]:
        place = {"queue": queue, "priority": priority, "limit": limit}
        return self._found(_lines, QUERIES["shared_lines"], place)

    def insert(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows by a few statements of many rows each.

        Bound values are faster than one JSON parameter (2.7 against 4.4 µs a row of 8 columns, no
        escaping) and than `executemany` (the GIL changes hands for each statement, not each row).
        """
        exhaust(self.insert_by_slices(table, columns, rows))

    def insert_by_slices(
        self,
        table: str,
        columns: str,
        rows: Sequence[tuple[object, ...]],
        *,
        verb: str = "INSERT",
    ) -> Sliced[None]:
        start = 0
        while start < len(rows):
            size = batch_size(len(rows) - start)
            values = list(chain.from_iterable(rows[start : start + size]))
            self.rows += self._do(_insert_sql(verb, table, columns, size), values).rowcount
            start += size
            if size == LARGEST_INSERT:
                yield None

    def replace(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        exhaust(self.insert_by_slices(table, columns, rows, verb="INSERT OR REPLACE"))

    def insert_large(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        exhaust(self.insert_large_by_slices(table, columns, rows))

    def insert_large_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        start = 0
        while start < len(rows):
            size = _large_size(rows, start)
            self.insert(table, columns, rows[start : start + size])
            start += size
            yield None

    def count(self, deltas: Sequence[tuple[str, Status, int]]) -> None:
        if len(deltas) > FEW_COUNTS:
            self.run("count", deltas=deltas)
            return
        for queue, status, n in deltas:
            row = {"queue": queue, "status": int(status), "n": n}
            self._do(QUERIES["count_up" if n > 0 else "count_down"], row)
            self.rows += 1

    def settings(self) -> dict[str, QueueSettings]:
        found = self._found(_settings, QUERIES["read_settings"], {})
        return dict(found)

    def ask_deadlines(self) -> Callable[[], Deadlines]:
        with store_errors(self._connection):
            found = read_deadlines(self._connection)
        return lambda: found

    def version(self) -> int:
        # SQLite keeps this number. Inside a transaction, reading it costs a microsecond.
        version: int = self._do("PRAGMA data_version").fetchone()[0]
        return version

    def note_memory(self) -> None:
        """Nothing: no other server runs ticks."""

    def tell(self, effects: Effects) -> None:
        """Nothing: no other server has leases."""

    def set_aside(self, source: str, keys: Iterable[Any]) -> None:
        if source == "pages":
            raise StoreDamaged(on_bad_page(", ".join(map(str, keys))))
        with store_errors(self._connection):
            if source == ANY_TABLE:
                self._set_aside_unreadable()
                return
            if source not in OF_JOBS:
                self.misfits += set_aside(self._connection, source, keys, self._now)
                return
            self._set_aside_jobs(keys, OF_JOBS[source])

    def _set_aside_jobs(self, keys: Iterable[int], known: str | None) -> None:
        for gone in set_aside_jobs(self._connection, keys, self._now, known):
            self.misfits.append(gone.misfit)
            self.removed.append(SetAsideJob(gone.key, gone.holder, gone.group))
            self.rows += 2

    def mend_stopped(self) -> Sequence[Misfit]:
        """Mend what a stopped server has left, in a whole transaction: what was set aside.

        Each job is judged by the rules of its own table, which takes too long while jobs wait.
        """
        from zq.store.sqlite.mending import refused_jobs

        self.begin()
        try:
            with store_errors(self._connection):
                for key, reason in refused_jobs(self._connection):
                    self._set_aside_jobs([key], reason)
            self.mend()
            self.commit()
        except BaseException:
            self.roll_back()
            raise
        return self.misfits

    def mend(self) -> None:
        from zq.store.sqlite.mending import count_again

        with store_errors(self._connection):
            refused = [key for (key,) in self._execute(OF_QUARANTINE["refused"])]
            self.set_aside("jobs", refused)
            self._set_aside_unreadable()
            of_rooms = [QUERIES[name] for room in recoveries() for name in room.lost]
            self.misfits += count_again(self._connection, of_rooms, self._now)

    def _set_aside_unreadable(self) -> None:
        from zq.store.sqlite.mending import lead_back, set_aside_unreadable

        self.misfits += set_aside_unreadable(self._connection, self._now)
        self.misfits += lead_back(self._connection, self._now)

    def _do(self, sql: str, parameters: Parameters | Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._execute(sql, parameters)
        except sqlite3.Error as error:
            raise store_error(error, self._connection) from error

    def _found_jobs(self, sql: str, parameters: Parameters) -> list[JobRecord]:
        return self._found(_decode_jobs, sql, parameters)

    def _found(self, decode: Callable[[str], T], sql: str, parameters: Parameters) -> T:
        """Decode the one JSON value of a query.

        Jobs that cannot be read are set aside, and the query runs once more.
        """
        values = _bound(parameters)
        while True:
            try:
                return decode(self._execute(sql, values).fetchone()[0])
            except Exception as error:
                known = len(self.removed)
                query = keys_query(sql)
                if is_unreadable(error) and query != sql:
                    self.set_aside("jobs", self._found(_keys, query, parameters))
                if len(self.removed) > known:
                    continue
                if isinstance(error, sqlite3.Error):
                    raise store_error(error, self._connection) from error
                raise


def _decode_jobs(text: str) -> list[JobRecord]:
    jobs = _jobs.decode(text)
    check_jobs(jobs)
    return jobs


def read_deadlines(connection: sqlite3.Connection) -> Deadlines:
    """When something falls due next."""
    times = connection.execute(QUERIES["deadlines"]).fetchone()
    return {due: time for due, time in zip(Due, times, strict=True) if time is not None}


def named(sql: str, names: Parameters) -> str:
    """A query with one parameter for each of these names."""
    return sql.replace("NAMES", ", ".join(f":{name}" for name in names))


def _by_parts(values: Sequence[str]) -> Iterator[Parameters]:
    """Values as parameters, as many at a time as one statement takes."""
    start = 0
    while start < len(values):
        part = values[start : start + batch_size(len(values) - start)]
        start += len(part)
        yield {f"n{index}": value for index, value in enumerate(part)}


def batch_size(left: int) -> int:
    """How many of the `left` values one statement takes."""
    # Powers of two above 64, any size below: this needs few statements to prepare and cache.
    if left <= 64:
        return left
    return min(1 << (left.bit_length() - 1), LARGEST_INSERT)


def _bound(parameters: Parameters) -> Parameters:
    """Convert parameters to types that SQLite accepts."""
    for name, value in parameters.items():
        if type(value) in _AS_JSON:
            parameters[name] = _encode(value).decode()
    return parameters


def _large_size(rows: Sequence[tuple[object, ...]], start: int) -> int:
    """How many rows go together from `start` on: at least one, however large."""
    weight = size = 0
    for row in rows[start : start + LARGEST_INSERT]:
        weight += sum([len(value) for value in row if isinstance(value, str)])
        if weight > LARGEST_BYTES:
            break
        size += 1
    return batch_size(max(size, 1))


@lru_cache(maxsize=512)
def _insert_sql(verb: str, table: str, columns: str, size: int) -> str:
    row = "(" + ",".join("?" * (columns.count(",") + 1)) + ")"
    return f"{verb} INTO {table} ({columns}) VALUES " + ",".join([row] * size)


@lru_cache(maxsize=MOST_ARMS)
def _merged(free: int, bounded: int) -> str:
    return merged(QUERIES, free, bounded)


@lru_cache(maxsize=MOST_ARMS)
def _merged_lines(arm: str, count: int) -> str:
    return merged_lines(QUERIES, arm, count)


@cache
def recoveries() -> list[Recovery]:
    """The parts of all rooms in a start."""
    return parts("store", "RECOVERY", Recovery)


def run_all(
    connection: sqlite3.Connection, names: Sequence[str], parameters: Mapping[str, object] = {}
) -> None:
    """Run statements of the tick, one after the other."""
    for name in names:
        connection.execute(QUERIES[name], parameters)
