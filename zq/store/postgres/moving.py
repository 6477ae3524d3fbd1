"""A database of PostgreSQL as one side of a move."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from zq.store.errors import DatabaseTooOld, DirectoryNotEmpty, StoreError
from zq.store.moving import MARK, MovedTable, MoveSide, MoveTarget, Row
from zq.store.postgres.connection import SESSION, Connection, connect_first, store_errors
from zq.store.postgres.migrate import latest_version, migrate, version_of
from zq.store.postgres.owning import (
    is_unfinished,
    lock,
    refuse_unfinished,
    refuse_unfit,
    value_of,
)
from zq.store.postgres.texts import sent

_OWN = ("version", "starts", MARK)
"""Entries of `meta` that other stores do not have."""

PECULIAR = frozenset({"inbox", "mail", "memory", "servers", "ticks"})
"""Tables that no other store has. A move leaves them out."""

_COLUMNS = """
    SELECT c.relname, a.attname, t.typname, a.attidentity <> '',
        coalesce(array_position(i.indkey::int2[], a.attnum), -1)
    FROM pg_class AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type AS t ON t.oid = a.atttypid
    JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
        AND c.relname <> 'meta' AND a.attgenerated = ''
        AND (c.relname, a.attname) <> ('queue_counts', 'slot')
    ORDER BY 1, 2
"""


@contextmanager
def source(address: str) -> Iterator["PostgresSide"]:
    """Lock the database of a stopped server, and read it. Nothing in it is changed.

    Raises `DirectoryInUse`, `ForeignDatabase`, `DatabaseTooNew`, `DatabaseTooOld`,
    `RestoreUnfinished` or `StoreError`.
    """
    with _locked(address, {"default_transaction_read_only": "on"}) as connection, store_errors():
        if version_of(connection) != latest_version():
            raise DatabaseTooOld(
                "no server of this version has run on it: start `zq serve` of this version once,"
                " and stop it again"
            )
        refuse_unfinished(connection)
        if waiting := value_of(connection, "SELECT count(*) FROM inbox"):
            raise StoreError(
                f"{waiting} rows are in its table zq.inbox, which no directory has: start `zq"
                " serve` once more, so that it takes them in, and mend or delete what it refuses"
            )
        yield PostgresSide(connection)


@contextmanager
def target(address: str) -> Iterator["PostgresTarget"]:
    """Lock a database without data of zq's, and make its tables.

    If the move does not complete it, the next one finds it. Raises `DirectoryInUse`,
    `ForeignDatabase`, `DirectoryNotEmpty` or `StoreError`.
    """
    # Only the last commit has to wait for the disk: what it completes was written before it.
    with _locked(address, {"synchronous_commit": "off"}) as connection, store_errors():
        if version_of(connection):
            if not is_unfinished(connection):
                raise DirectoryNotEmpty(
                    "the database has data of zq's already: name another one, or remove them with"
                    " DROP SCHEMA zq CASCADE"
                )
            migrate(connection)
        else:
            with connection.transaction():
                migrate(connection)
                _note(connection, {MARK: '{"source":""}'})
        yield PostgresTarget(connection)


class PostgresSide(MoveSide):
    """A connection to a database that nobody else has."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._types: dict[tuple[str, str], str] = {}
        self._numbered: list[tuple[str, str]] = []
        keys: dict[str, dict[int, str]] = {}
        rest: dict[str, list[str]] = {}
        for row in connection.execute(_COLUMNS):
            table, column, kind, is_numbered, place = _typed(row)
            if table in PECULIAR:
                continue
            self._types[table, column] = kind
            if is_numbered:
                self._numbered.append((table, column))
            keys.setdefault(table, {})
            if place >= 0:
                keys[table][place] = column
            else:
                rest.setdefault(table, []).append(column)
        self.tables = [
            MovedTable(
                table, (*[key[place] for place in sorted(key)], *rest.get(table, ())), len(key)
            )
            for table, key in keys.items()
        ]

    def meta(self) -> dict[str, str]:
        found = self._connection.execute("SELECT name, value FROM meta").fetchall()
        return {str(name): str(value) for name, value in found if name not in self._own}

    _own: Sequence[str] = _OWN

    def count(self, table: MovedTable) -> int:
        return int(str(value_of(self._connection, f"SELECT count(*) FROM {_source(table)}")))

    def rows(self, table: MovedTable, after: Row | None = None) -> Iterator[Row]:
        columns = [self._read(table.name, column) for column in table.columns]
        key = [f'"{column}"' for column in table.columns[: table.width]]
        text = f"SELECT {', '.join(columns)} FROM {_source(table)}"
        if after is not None:
            marks = ", ".join(f"${nth}" for nth in range(1, table.width + 1))
            text += f" WHERE ({', '.join(key)}) > ({marks})"
        text += f" ORDER BY {', '.join(key)}"
        with self._connection.cursor() as cursor:
            values = [sent(value) if isinstance(value, str) else value for value in after or ()]
            yield from cursor.stream(text.encode(), values, binary=True)

    def highest_key(self) -> int:
        return int(str(value_of(self._connection, "SELECT coalesce(max(id), 0) FROM jobs")))

    def _read(self, table: str, column: str) -> str:
        cast = _READ_AS.get(self._types[table, column], "")
        return f'"{column}"{cast}'


_READ_AS = {"json": "::text", "bool": "::integer"}
"""What other stores have in the place of types that only PostgreSQL has."""


class PostgresTarget(PostgresSide, MoveTarget):
    """A database that is filled."""

    _own = ("version",)

    def empty(self, mark: str) -> None:
        names = ", ".join(table.name for table in self.tables)
        with self._connection.transaction():
            self._connection.execute(f"TRUNCATE {names}".encode())
            _note(self._connection, {MARK: mark})

    def write(self, table: MovedTable, rows: Sequence[Row], mark: str) -> None:
        names = ", ".join(f'"{column}"' for column in table.columns)
        copy = f"COPY {table.name} ({names}) FROM STDIN".encode()
        with store_errors(), self._connection.transaction():
            with self._connection.cursor() as cursor, cursor.copy(copy) as copied:
                for row in rows:
                    copied.write_row([sent(v) if isinstance(v, str) else v for v in row])
            _note(self._connection, {MARK: mark})

    def complete(self, meta: Mapping[str, str]) -> None:
        for table in self.tables:
            # A plan for a table of no rows would last until the first statistics.
            self._connection.execute(f"VACUUM (ANALYZE) {table.name}".encode())
        self._connection.execute("SET synchronous_commit = on")
        with self._connection.transaction():
            for name, column in self._numbered:
                self._connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{name}', '{column}'), max({column}))"
                    f" FROM {name} HAVING max({column}) IS NOT NULL".encode()
                )
            self._connection.execute("DELETE FROM meta WHERE name <> 'version'")
            _note(self._connection, {name: meta[name] for name in meta if name not in _OWN})


def _source(table: MovedTable) -> str:
    """What has the rows of a table. Servers that share a database count each for itself."""
    return "queue_totals" if table.name == "queue_counts" else table.name


@contextmanager
def _locked(address: str, settings: dict[str, str]) -> Iterator[Connection]:
    connection = connect_first(address, SESSION | settings)
    try:
        with store_errors():
            refuse_unfit(connection)
            lock(connection)
        yield connection
    finally:
        connection.close()


def _note(connection: Connection, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        connection.execute(
            "INSERT INTO meta (name, value) VALUES ($1, $2)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, sent(value)),
        )


def _typed(row: tuple[object, ...]) -> tuple[str, str, str, bool, int]:
    table, column, kind, is_numbered, place = row
    return str(table), str(column), str(kind), bool(is_numbered), int(str(place))
