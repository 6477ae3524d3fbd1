"""The tick's transaction on PostgreSQL: it runs the named statements and decodes their rows."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import psycopg

from zq.model.commands import Deadlines, Due
from zq.model.damage import Misfit
from zq.model.errors import NotOnThisStore
from zq.model.filters import Filter
from zq.model.job import Brief, JobRecord
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings
from zq.store.api import Line, SetAsideJob, Sliced, Transaction, exhaust
from zq.store.errors import StoreDamaged
from zq.store.postgres.connection import Connection, store_error
from zq.store.postgres.queries import Statement, compiled, load, load_of_rooms
from zq.store.postgres.rows import briefs_of, jobs_of
from zq.store.postgres.where import where

TEXTS = {
    **load("zq.store.postgres.tick"),
    **load("zq.store.postgres.claims"),
    **load("zq.store.postgres.lines"),
    **load("zq.store.postgres.settings"),
    **load("zq.store.postgres.log"),
    **load("zq.store.postgres.upkeep"),
    **load_of_rooms(),
}
TEXTS |= {f"{name}_briefs": TEXTS[name] for name in ("read_due", "read_waited")}
TEXTS |= {
    f"{name}_telling": f"{TEXTS[name]} RETURNING id" for name in ("shut_groups", "open_groups")
}

LARGEST_INSERT = 2048
"""At most so many rows go into one INSERT."""

MOST_ARMS = 200
"""So many queues one statement merges. PostgreSQL plans each arm."""

_settings = msgspec.json.Decoder(QueueSettings).decode

Columns = Mapping[tuple[str, str], str]
"""The type of each column, by its table and its name."""


class PostgresTransaction(Transaction):
    """A transaction of the tick's connection, which nothing else uses meanwhile."""

    def __init__(self, connection: Connection, columns: Columns, now: int) -> None:
        self.rows = 0
        self.misfits: list[Misfit] = []
        self.removed: list[SetAsideJob] = []
        self._connection = connection
        self._columns = columns
        self._now = now

    @property
    def is_open(self) -> bool:
        idle = psycopg.pq.TransactionStatus.IDLE
        return not self._connection.closed and self._connection.info.transaction_status is not idle

    def begin(self) -> None:
        self._do(_BEGIN)

    def commit(self) -> object:
        return self._do(_COMMIT)

    def roll_back(self) -> None:
        if self.is_open:
            self._do(_ROLLBACK)

    def part(self) -> "PostgresTransaction":
        self._do(_SAVEPOINT)
        return PostgresTransaction(self._connection, self._columns, self._now)

    def keep(self) -> None:
        self._do(_RELEASE)

    def undo(self) -> None:
        self._do(_UNDO)
        self._do(_RELEASE)

    def run(self, name: str, **parameters: Any) -> int:
        changed = self._run(name, parameters).rowcount
        if changed > 0:
            self.rows += changed
        return changed

    def value(self, name: str, **parameters: Any) -> Any:
        row = self._run(name, parameters).fetchone()
        return row[0] if row else None

    def rows_of(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._run(name, parameters).fetchall()

    def table(self, name: str, **parameters: Any) -> list[list[Any]]:
        return [list(row) for row in self._run(name, parameters).fetchall()]

    def jobs(self, name: str, **parameters: Any) -> list[JobRecord]:
        return jobs_of(self._run(name, parameters).fetchall())

    def briefs(self, name: str, **parameters: Any) -> list[Brief]:
        return briefs_of(self._run(name, parameters).fetchall())

    def pairs(self, name: str, **parameters: Any) -> list[tuple[int, str]]:
        return self._run(name, parameters).fetchall()

    def keys(self, name: str, **parameters: Any) -> list[int]:
        return [key for (key,) in self._run(name, parameters).fetchall()]

    def names(self, name: str, **parameters: Any) -> list[str]:
        return [found for (found,) in self._run(name, parameters).fetchall()]

    def owners(self, locks: Sequence[str]) -> list[JobRecord]:
        return self.jobs_of("read_owners", locks)

    def table_of(self, name: str, values: Sequence[str]) -> list[list[Any]]:
        return self.table(name, names=values)

    def jobs_of(self, name: str, values: Sequence[str]) -> list[JobRecord]:
        return self.jobs(name, names=values)

    def matching(self, keys: Sequence[int], filter: Filter) -> list[int]:
        conditions, parameters = where(filter)
        statement = compiled(TEXTS["matching"].replace("CONDITIONS", conditions))
        found = self._do(statement, {"slice": keys, **parameters})
        return [key for (key,) in found.fetchall()]

    def first_of(
        self, free: Sequence[str], bounds: Mapping[str, int], limit: int
    ) -> list[JobRecord]:
        queues = [*free, *bounds]
        heads: list[JobRecord] = []
        for start in range(0, len(queues), MOST_ARMS):
            part = queues[start : start + MOST_ARMS]
            # The bounded ones come last, as the arms do.
            most = [(index, bounds[queue]) for index, queue in enumerate(part) if queue in bounds]
            names: dict[str, Any] = {f"q{index}": queue for index, queue in enumerate(part)}
            names |= {f"m{index}": bound for index, bound in most}
            statement = _merged(len(part) - len(most), len(most))
            heads += jobs_of(self._do(statement, {"limit": limit, **names}).fetchall())
        if len(queues) > MOST_ARMS:
            heads.sort(key=lambda job: (job.priority, job.key))
        return heads[:limit]

    def open_lines(
        self, queues: Sequence[str] | None, agings: Sequence[int], limit: int
    ) -> list[Line]:
        if queues is None and not agings:
            return self._lines(_statement("open_lines"), {"limit": limit})
        arm, values = ("line_arm", queues) if queues is not None else ("aging_arm", [0, *agings])
        lines: list[Line] = []
        for start in range(0, len(values), MOST_ARMS):
            part = values[start : start + MOST_ARMS]
            names: dict[str, Any] = {f"v{index}": value for index, value in enumerate(part)}
            names |= {"limit": limit, "now": self._now}
            lines += self._lines(_merged_lines(arm, len(part)), names)
        if len(values) > MOST_ARMS:
            lines.sort(key=lambda line: (line.urgency, line.head))
        return lines[:limit]

    def shared_lines(self, queue: str, priority: int, limit: int) -> list[Line]:
        place = {"queue": queue, "priority": priority, "limit": limit}
        return self._lines(_statement("shared_lines"), place)

    def insert(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        exhaust(self.insert_by_slices(table, columns, rows))

    def insert_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        yield from self._insert(table, columns, rows, "")

    def replace(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        exhaust(self._insert(table, columns, rows, self._replacing(table, columns)))

    def insert_large(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        self.insert(table, columns, rows)

    def insert_large_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        yield from self.insert_by_slices(table, columns, rows)

    def count(self, deltas: Sequence[tuple[str, Status, int]]) -> None:
        if deltas:
            self.run("count", deltas=sorted(deltas))
            self.rows += len(deltas)

    def settings(self) -> dict[str, QueueSettings]:
        return {queue: _settings(text) for queue, text in self.rows_of("read_settings")}

    def deadlines(self) -> Deadlines:
        (times,) = self.rows_of("deadlines")
        return {due: time for due, time in zip(Due, times, strict=True) if time is not None}

    def spare(self) -> None:
        """Nothing: PostgreSQL names no page that lies beside a job."""

    def version(self) -> int:
        # The slot's lock keeps other servers out, so nobody else changes settings.
        return 0

    def set_aside(self, source: str, keys: Iterable[Any]) -> None:
        named = ", ".join(map(str, keys))
        raise StoreDamaged(f"rows of {source} cannot be read: {named}")

    def _insert(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]], behind: str
    ) -> Sliced[None]:
        statement = self._insertion(table, columns, behind)
        for start in range(0, len(rows), LARGEST_INSERT):
            some = rows[start : start + LARGEST_INSERT]
            self.rows += self._do(statement, {"rows": some}).rowcount
            yield None

    def _insertion(self, table: str, columns: str, behind: str) -> Statement:
        names = columns.split(", ")
        casts = tuple(self._columns[table, name] for name in names)
        return _insertion(table, columns, casts, behind)

    def _replacing(self, table: str, columns: str) -> str:
        """What an INSERT does with rows whose keys are taken already."""
        keys = self._columns[table, ""].split(", ")
        rest = [name for name in columns.split(", ") if name not in keys]
        changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
        does = f"UPDATE SET {changes}" if changes else "NOTHING"
        return f" ON CONFLICT ({', '.join(keys)}) DO {does}"

    def _lines(self, statement: Statement, parameters: Mapping[str, Any]) -> list[Line]:
        return [Line(*row) for row in self._do(statement, parameters).fetchall()]

    def _run(self, name: str, parameters: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        return self._do(_statement(name), parameters)

    def _do(
        self, statement: Statement, parameters: Mapping[str, Any] | None = None
    ) -> psycopg.Cursor[Any]:
        try:
            values = statement.bound(parameters or {})
            return self._connection.execute(statement.sql, values, binary=True)
        except psycopg.Error as error:
            raise store_error(error) from error


@lru_cache(maxsize=1024)
def _statement(name: str) -> Statement:
    text = TEXTS.get(name)
    if text is None:
        raise NotOnThisStore(f"the statement {name}")
    return compiled(text)


@lru_cache(maxsize=256)
def _insertion(table: str, columns: str, casts: tuple[str, ...], behind: str) -> Statement:
    # A column of JSON gets text that is JSON already.
    sent = ["text" if cast == "json" else cast for cast in casts]
    arrays = ", ".join(f":rows.{nth}::{cast}[]" for nth, cast in enumerate(sent))
    values = ", ".join(
        f"c{nth}::json" if cast == "json" else f"c{nth}" for nth, cast in enumerate(casts)
    )
    names = ", ".join(f"c{nth}" for nth in range(len(casts)))
    return compiled(
        f"INSERT INTO {table} ({columns}) SELECT {values} FROM unnest({arrays}) AS r ({names})"
        + behind
    )


@lru_cache(maxsize=MOST_ARMS)
def _merged(free: int, bounded: int) -> Statement:
    kinds = [TEXTS["claim_arm"]] * free + [TEXTS["claim_bounded_arm"]] * bounded
    arms = [
        arm.replace(":queue", f":q{index}").replace(":most", f":m{index}")
        for index, arm in enumerate(kinds)
    ]
    return compiled(TEXTS["claim_merged"].replace("ARMS", "\n    UNION ALL ".join(arms)))


@lru_cache(maxsize=MOST_ARMS)
def _merged_lines(arm: str, count: int) -> Statement:
    sql = re.sub(":(queue|aging_ms)", ":value", TEXTS[arm])
    arms = [sql.replace(":value", f":v{index}") for index in range(count)]
    return compiled(TEXTS["lines_merged"].replace("ARMS", "\n    UNION ALL ".join(arms)))


_BEGIN, _COMMIT, _ROLLBACK, _SAVEPOINT, _RELEASE, _UNDO = map(
    compiled,
    ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT part", "RELEASE part", "ROLLBACK TO part"),
)


def read_columns(connection: Connection) -> Columns:
    """The type of each column of each table; under an empty name the columns of its key."""
    found = connection.execute(
        "SELECT c.relname, a.attname, t.typname FROM pg_attribute AS a"
        " JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid"
        " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"
        " AND a.attnum > 0 AND NOT a.attisdropped"
    )
    types = {(str(table), str(name)): str(type) for table, name, type in found}
    keys = connection.execute(
        "SELECT c.relname, string_agg(a.attname, ', ' ORDER BY array_position(i.indkey, a.attnum))"
        " FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid"
        " JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)"
        " WHERE i.indisprimary AND c.relnamespace = current_schema()::regnamespace GROUP BY 1"
    )
    return types | {(str(table), ""): str(names) for table, names in keys}
