"""The tick's transaction on PostgreSQL: it runs the named statements and decodes their rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import msgspec

from zq.model.commands import Deadlines, Due
from zq.model.effects import Effects, Misfit
from zq.model.errors import NotOnThisStore
from zq.model.filters import Filter
from zq.model.ids import HOLDER_BITS
from zq.model.job import Brief, JobRecord
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings
from zq.store.api import Line, SetAsideJob, Sliced, Transaction, exhaust
from zq.store.errors import StoreDamaged
from zq.store.postgres.connection import Connection
from zq.store.postgres.floors import FIRST, KEEPS, Floors
from zq.store.postgres.pipeline import Pipeline, Row, Sent
from zq.store.postgres.queries import Statement, briefs_of, compiled, jobs_of, load, load_of_rooms
from zq.store.postgres.sharing import BESIDE, MOST_KEYS, OF_ALL_SERVERS, Memory, TurnNeeded
from zq.store.postgres.where import Finds, where
from zq.store.texts import merged, merged_lines

TEXTS = {
    **load("zq.store.postgres.tick"),
    **load("zq.store.postgres.claims"),
    **load("zq.store.postgres.lines"),
    **load("zq.store.postgres.settings"),
    **load("zq.store.postgres.log"),
    **load("zq.store.postgres.upkeep"),
    **load("zq.store.postgres.sharing"),
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
    """A transaction of the tick's connection, which nothing else uses meanwhile.

    What is written is not waited for. COMMIT fails if any of it has failed.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        columns: Columns,
        now: int,
        memory: Memory | None = None,
        *,
        shares: bool = False,
        floors: Floors | None = None,
    ) -> None:
        """Claims begin at `floors`, if there are some.

        `memory` is that of ticks, if other servers have the database too.

        Its turn is its own, unless it may be `shares`d with theirs: see
        `zq.store.postgres.sharing`.
        """
        self.rows = 0
        self.misfits: list[Misfit] = []
        self.removed: list[SetAsideJob] = []
        self.is_alone = memory is None
        self._pipeline = pipeline
        self._columns = columns
        self._now = now
        self._memory = memory
        self._turn: Sent | None = None
        """The version of what ticks remember, once the turn of this transaction has come."""
        self._shares = shares
        self._is_beside = False
        """True if ticks of other servers may run at the same time."""
        self._slot = 0 if memory is None else memory.slot
        self._changes_memory = False
        self._floors = floors if memory is None else None

    @property
    def is_open(self) -> bool:
        return self._pipeline.is_open and not self._pipeline.connection.closed

    def begin(self) -> None:
        if self._floors is not None:
            self._floors.begin()
        self._pipeline.begin()
        if self._memory is not None:
            known = None if self._memory.asks else self._memory.version
            self._is_beside = self._shares and self._memory.shares
            asked = {"known": known, "beside": self._is_beside}
            self._turn = self._pipeline.send(_statement("begin_tick"), asked)

    def commit(self, durable: bool = True) -> None:
        self._pipeline.commit(durable)
        if self._floors is not None:
            self._floors.committed()
        if self._memory is not None:
            self._memory.committed(changes=self._changes_memory, beside=self._is_beside)

    def roll_back(self) -> None:
        if self.is_open:
            self._pipeline.roll_back()

    def part(self) -> "PostgresTransaction":
        self._pipeline.send(_SAVEPOINT)
        part = PostgresTransaction(self._pipeline, self._columns, self._now, self._memory)
        part._turn, part._is_beside = self._turn, self._is_beside
        part._floors = self._floors
        return part

    def keep(self) -> None:
        self._pipeline.answer(self._pipeline.send(_RELEASE))

    def undo(self) -> None:
        if self._floors is not None:
            self._floors.drop()
        self._pipeline.clear()
        self._pipeline.send(_UNDO)
        self._pipeline.answer(self._pipeline.send(_RELEASE))

    def run(self, name: str, **parameters: Any) -> int:
        pipeline = self._pipeline
        sent = pipeline.send(self._allowed(name), parameters)
        changed = pipeline.answer(sent).command_tuples or 0
        self.rows += changed
        return changed

    def write(self, name: str, expected: int | None = None, /, **parameters: Any) -> None:
        statement = self._allowed(name)
        if expected is None:
            self._pipeline.send(statement, parameters)
            return
        self._pipeline.send(_expecting(name), {"expected": expected, **parameters})
        self.rows += expected

    def value(self, name: str, **parameters: Any) -> Any:
        rows = self._run(name, parameters)
        return rows[0][0] if rows else None

    def rows_of(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._run(name, parameters)

    def table(self, name: str, **parameters: Any) -> list[list[Any]]:
        return [list(row) for row in self._run(name, parameters)]

    def jobs(self, name: str, **parameters: Any) -> list[JobRecord]:
        if name in ("claim_any", "claim_queue"):
            return self._claim(name, parameters.get("queue"), parameters)
        return jobs_of(self._run(name, parameters))

    def _claim(
        self, name: str, queue: str | None, parameters: Mapping[str, Any]
    ) -> list[JobRecord]:
        """The first ready jobs, from the place on before which there are none."""
        priority, key = FIRST if self._floors is None else self._floors.of(queue)
        found = jobs_of(self._run(name, {**parameters, "priority": priority, "first": key}))
        if self._floors is not None:
            self._floors.found(queue, (found[0].priority, found[0].key) if found else None)
        return found

    def briefs(self, name: str, **parameters: Any) -> list[Brief]:
        return briefs_of(self._run(name, parameters))

    def pairs(self, name: str, **parameters: Any) -> list[tuple[int, str]]:
        return self._run(name, parameters)

    def keys(self, name: str, **parameters: Any) -> list[int]:
        return [key for (key,) in self._run(name, parameters)]

    def names(self, name: str, **parameters: Any) -> list[str]:
        return [found for (found,) in self._run(name, parameters)]

    def owners(self, locks: Sequence[str]) -> list[JobRecord]:
        if self._is_beside:
            if len(locks) > MOST_KEYS:
                raise TurnNeeded("so many unique keys need a turn of their own")
            self._pipeline.send(_statement("lock_keys"), {"names": locks})
        return self.jobs_of("read_owners", locks)

    def table_of(self, name: str, values: Sequence[str]) -> list[list[Any]]:
        return self.table(name, names=values)

    def jobs_of(self, name: str, values: Sequence[str]) -> list[JobRecord]:
        return self.jobs(name, names=values)

    def matching(self, keys: Sequence[int], filter: Filter) -> list[int]:
        self._allowed("matching")
        conditions, parameters = where(filter, finds=Finds.BY_KEYS)
        statement = compiled(TEXTS["matching"].replace("CONDITIONS", conditions))
        return [key for (key,) in self._do(statement, {"slice": keys, **parameters})]

    def first_of(
        self, free: Sequence[str], bounds: Mapping[str, int], limit: int
    ) -> list[JobRecord]:
        queues = [*free, *bounds]
        if len(queues) == 1 and free:
            return self.jobs("claim_queue", queue=free[0], limit=limit)
        heads: list[JobRecord] = []
        for start in range(0, len(queues), MOST_ARMS):
            part = queues[start : start + MOST_ARMS]
            # The bounded ones come last, as the arms do.
            most = [(index, bounds[queue]) for index, queue in enumerate(part) if queue in bounds]
            names: dict[str, Any] = {f"q{index}": queue for index, queue in enumerate(part)}
            names |= {f"m{index}": bound for index, bound in most}
            statement = _merged(len(part) - len(most), len(most))
            found = jobs_of(self._do(statement, {"limit": limit, **names}))
            if self._is_beside and len(found) < limit:
                self._refuse_short(len(found), part, limit)
            heads += found
        if len(queues) > MOST_ARMS:
            heads.sort(key=lambda job: (job.priority, job.key))
        return heads[:limit]

    def _refuse_short(self, found: int, queues: Sequence[str], limit: int) -> None:
        """Raise `TurnNeeded` if a claim passed over jobs that another server chooses from, too.

        It merges the first jobs of queues before it knows which of them are locked, so there may be
        more behind these.
        """
        names = {f"q{index}": queue for index, queue in enumerate(queues)}
        ((there,),) = self._do(_counted(len(queues)), {"limit": limit, **names})
        if there > found:
            raise TurnNeeded("another server takes from these queues at the same time")

    def open_lines(
        self, queues: Sequence[str] | None, agings: Sequence[int], limit: int, steady: int
    ) -> list[Line]:
        self._allowed("open_lines")
        if queues is None and not agings:
            return self._lines(_statement("open_lines"), {"limit": limit})
        arm, values = ("line_arm", queues) if queues is not None else ("aging_arm", [0, *agings])
        lines: list[Line] = []
        for start in range(0, len(values), MOST_ARMS):
            part = values[start : start + MOST_ARMS]
            names: dict[str, Any] = {f"v{index}": value for index, value in enumerate(part)}
            names |= {"limit": limit, "steady": steady}
            lines += self._lines(_merged_lines(arm, len(part)), names)
        if len(values) > MOST_ARMS:
            lines.sort(key=lambda line: (line.urgency, line.head))
        return lines[:limit]

    def shared_lines(self, queue: str, priority: int, limit: int) -> list[Line]:
        self._allowed("shared_lines")
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
            self.write("count", deltas=sorted(deltas), slot=self._slot)
            self.rows += len(deltas)

    def settings(self) -> dict[str, QueueSettings]:
        return {queue: _settings(text) for queue, text in self.rows_of("read_settings")}

    def ask_deadlines(self) -> Callable[[], Deadlines]:
        sent = self._pipeline.send(_statement("deadlines"))

        def told() -> Deadlines:
            again = self._pipeline.send(_statement("deadlines")) if sent.is_lost else sent
            (times,) = self._pipeline.rows(again)
            return {due: time for due, time in zip(Due, times, strict=True) if time is not None}

        return told

    def spare(self) -> None:
        """Nothing: PostgreSQL names no page that lies beside a job."""

    def version(self) -> int:
        memory = self._memory
        if memory is None:
            # Nobody else changes anything.
            return 0
        if memory.asks and self._turn is not None:
            ((found,),) = self._pipeline.rows(self._turn)
            memory.found(found)
        return memory.foreign

    def note_memory(self) -> None:
        if self._memory is not None and not self._changes_memory:
            self._changes_memory = True
            self.write("note_memory", version=self._memory.version + 1)

    def tell(self, effects: Effects) -> None:
        if self._memory is None or not effects.ended:
            return
        own, revoked, lapsed = self._memory.slot, set(effects.revoked), set(effects.lapsed)
        ended = [
            (holder >> HOLDER_BITS, holder, key, key in revoked, key in lapsed)
            for holder, key in effects.ended
            # Claimants are no server's own, and what leaves for another place has no stream.
            if holder > 0 and holder >> HOLDER_BITS != own
        ]
        if ended:
            self.write("tell", ended=ended)

    def set_aside(self, source: str, keys: Iterable[Any]) -> None:
        if source == "jobs":
            # Those were deleted between two reads that are not there any more.
            keys = [job.key for job in self.briefs("read_briefs", keys=list(keys))]
            if not keys:
                return
        named = ", ".join(map(str, keys))
        raise StoreDamaged(f"rows of {source} cannot be read: {named}")

    def mend(self) -> None:
        """Nothing: no row can break the rules of its table."""

    def _insert(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]], behind: str
    ) -> Sliced[None]:
        statement = self._insertion(table, columns, behind)
        if self._is_beside:
            _refuse_shared(table, columns, rows)
        if self._floors is not None and table == "jobs":
            names = columns.split(", ")
            priority, key = names.index("priority"), names.index("id")
            self._floors.came((row[priority], row[key]) for row in rows)  # type: ignore[misc]
        for start in range(0, len(rows), LARGEST_INSERT):
            some = rows[start : start + LARGEST_INSERT]
            self._pipeline.send(statement, {"rows": some})
            self.rows += len(some)
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
        return [Line(*row) for row in self._do(statement, parameters)]

    def _run(self, name: str, parameters: Mapping[str, Any]) -> list[Row]:
        return self._do(self._allowed(name), parameters)

    def _allowed(self, name: str) -> Statement:
        """A statement. Raises `TurnNeeded` if it may not run beside ticks of other servers."""
        if self._is_beside and name not in BESIDE:
            raise TurnNeeded(f"the statement {name} needs a turn of its own")
        if self._floors is not None and name not in KEEPS:
            self._floors.drop()
        return _statement(name)

    def _do(self, statement: Statement, parameters: Mapping[str, Any]) -> list[Row]:
        return self._pipeline.rows(self._pipeline.send(statement, parameters))


@lru_cache(maxsize=1024)
def _statement(name: str) -> Statement:
    text = TEXTS.get(name)
    if text is None:
        raise NotOnThisStore(f"statement {name}")
    return compiled(text)


def _refuse_shared(table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Raise `TurnNeeded` unless rows are plain jobs, or what lies beside jobs."""
    if table in ("payloads", "results", "errors"):
        return
    names = columns.split(", ")
    shared = [names.index(name) for name in OF_ALL_SERVERS if name in names]
    if table != "jobs" or any(row[place] is not None for row in rows for place in shared):
        raise TurnNeeded(f"new rows of {table} need a turn of their own")


@cache
def _expecting(name: str) -> Statement:
    """The statement, but it fails unless it changes the expected number of rows."""
    text = TEXTS[name]
    return compiled(
        f"WITH changed AS ({text} RETURNING 1)"
        " SELECT 1 / (count(*) = :expected::bigint)::integer FROM changed"
    )


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
    return compiled(merged(TEXTS, free, bounded))


def counted(count: int) -> str:
    """The text that counts what a claim of so many queues chooses from."""
    arms = [TEXTS["claim_arm"].replace(":queue", f":q{index}") for index in range(count)]
    return TEXTS["count_merged"].replace("ARMS", "\n    UNION ALL ".join(arms))


@lru_cache(maxsize=MOST_ARMS)
def _counted(count: int) -> Statement:
    return compiled(counted(count))


@lru_cache(maxsize=MOST_ARMS)
def _merged_lines(arm: str, count: int) -> Statement:
    return compiled(merged_lines(TEXTS, arm, count))


_SAVEPOINT, _RELEASE, _UNDO = map(compiled, ("SAVEPOINT part", "RELEASE part", "ROLLBACK TO part"))


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
