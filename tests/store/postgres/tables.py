"""Databases that PostgreSQL knows more or less of: what plans must not depend on."""

from collections.abc import Iterator

from outbox.postgres import the_server

from store.on_postgres import blank
from zq.store.postgres.connection import SESSION, connect

FEW, MANY = 100, 3_000

_JOBS = """
INSERT INTO jobs (id, queue, type, priority, status, held, ready_at, deliveries, dequeued_at,
    holder, finished_at, purge_at, payload_size, payload, group_id, line, due_at, expires_at,
    lease_until, unique_key, unique_while, owns_key)
SELECT i, CASE WHEN {even} THEN 'q' || i % 30 ELSE 'q' END, 't', i % 3, s, 0, i,
    (s IN (2, 3, 4))::int, CASE WHEN s IN (2, 3, 4) THEN i END, CASE WHEN s = 2 THEN 1 END,
    CASE WHEN s > 2 THEN i END,
    CASE WHEN s > 2 THEN i END, 2, '{{}}', CASE WHEN i % 7 = 0 THEN 'g' || i % 50 END,
    CASE WHEN i % 8 = 0 THEN i END, CASE WHEN s = 0 AND i % 2 = 0 THEN i END,
    CASE WHEN s < 2 AND i % 5 = 0 THEN i END, CASE WHEN s = 2 AND i % 2 = 0 THEN i END,
    CASE WHEN i % 6 = 0 THEN i::text END, CASE WHEN i % 6 = 0 THEN 2 END, i % 6 = 0 AND s < 5
FROM (
    SELECT i, CASE WHEN {even} THEN i % 7 WHEN i % 100 < 3 THEN i % 100 * 2 ELSE 1 END AS s
    FROM generate_series(1, {rows}) AS i) AS each
"""

_VALUES = {
    "int8": "i",
    "int4": "0",
    "int2": "i % 7",
    "float8": "0.5",
    "bool": "false",
    "json": "'{{}}'",
    "bytea": "''",
    "text": "'{name}' || CASE WHEN {even} OR {unique} THEN i ELSE 0 END",
}
"""What rows have, by the type of the column."""

_COLUMNS = """
SELECT c.relname, a.attname, t.typname, EXISTS (
    SELECT 1 FROM pg_index AS i
    WHERE i.indrelid = c.oid AND i.indisunique AND a.attnum = ANY (i.indkey))
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
JOIN pg_type AS t ON t.oid = a.atttypid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0
    AND a.attidentity <> 'a' AND a.attgenerated = ''
    AND c.relname NOT IN ('jobs', 'meta', 'servers', 'memory')
    AND (c.relname, a.attname) NOT IN (('inbox', 'created'), ('user_grants', 'group_id'))
"""


def states() -> Iterator[tuple[str, str]]:
    """The name of each state, and the address of a database in it.

    PostgreSQL has looked at none of its tables, looked at them while they were empty, knows them as
    they are, or as they were before rows came or went, or has vacuumed them once no row was left.
    """
    yield "unknown", _database()
    yield "empty", _database(analyse=True)
    yield "small", _database(FEW, even=True, analyse=True)
    yield "skewed", _database(MANY, analyse=True)
    yield "grown", _database(analyse=True, grows=MANY)
    yield "emptied", _database(MANY, analyse=True, shrinks=True)
    yield "drained", _database(MANY, drains=True)
    yield "filled again", _database(MANY, drains=True, grows=MANY)


def _database(
    rows: int = 0,
    *,
    even: bool = False,
    analyse: bool = False,
    grows: int = 0,
    shrinks: bool = False,
    drains: bool = False,
) -> str:
    address = the_server().new_database(blank())
    with connect(address, SESSION) as connection:
        columns = connection.execute(_COLUMNS).fetchall()

        tables = {str(table) for table, *_ in columns}

        def fill(rows: int) -> None:
            words = {"even": str(even).lower(), "rows": rows}
            connection.execute(_JOBS.format(**words).encode())
            columns_of: dict[object, dict[object, str]] = {}
            for table, name, kind, unique in columns:
                value = _VALUES[str(kind)].format(**words, name=name, unique=str(unique).lower())
                columns_of.setdefault(table, {})[name] = value
            for table, values in columns_of.items():
                names = ", ".join(f'"{name}"' for name in values)
                sql = f"INSERT INTO {table} ({names}) SELECT {', '.join(values.values())}"
                connection.execute(f"{sql} FROM generate_series(1, {rows}) AS i".encode())

        if rows:
            fill(rows)
        if analyse:
            connection.execute("VACUUM ANALYZE")
        if drains:
            # As the server itself vacuums: the pages stay, and are known to have no rows.
            for table in ["jobs", *tables]:
                connection.execute(f"DELETE FROM {table}".encode())
                connection.execute(f"VACUUM (TRUNCATE FALSE) {table}".encode())
        if grows:
            fill(grows)
        if shrinks:
            connection.execute("DELETE FROM jobs")
    return address
