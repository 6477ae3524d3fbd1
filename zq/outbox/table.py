"""The tables of an outbox in the dialects of SQLite and PostgreSQL.

A row of `zq_outbox` is a job in the form of `POST /jobs`, as text. `error` tells why the server has
refused it; the relay leaves such a row where it is. In a database of zq's own, `zq_outbox` is a
view of `zq.inbox`, which its server takes rows from.

The one row of `zq_outbox_lane` is the producer as which relays send, with its epoch. `ids` is a
list in JSON: the rows that have numbers, in their order. The number of the first one is `first`.
"""

from typing import Literal, get_args

from zq.client.errors import InvalidOption

Dialect = Literal["sqlite", "postgresql"]

HOW_TO_CREATE = (
    "create it by outbox.create_table(connection), by the script of zq relay --ddl, or in Django by"
    " manage.py migrate"
)
"""The advice for a missing table."""

_SQLITE = (
    """\
CREATE TABLE IF NOT EXISTS zq_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document TEXT NOT NULL,
    created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    error TEXT
)""",
    """\
CREATE TABLE IF NOT EXISTS zq_outbox_lane (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    producer TEXT NOT NULL,
    epoch TEXT NOT NULL,
    first INTEGER NOT NULL,
    ids TEXT NOT NULL
)""",
)

# The notification is sent when the transaction commits, and never if it rolls back. A trigger sends
# it for whoever writes the row. Where all is there already, no lock keeps others from writing.
_POSTGRESQL = (
    # Where zq keeps its jobs in this database, rows go to its inbox, and no relay is needed.
    """\
DO $$ BEGIN
    IF to_regclass('zq_outbox') IS NULL AND EXISTS (
        SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname = 'zq' AND relname = 'inbox' AND has_schema_privilege(nspname, 'USAGE')
            AND has_column_privilege(pg_class.oid, 'document', 'INSERT')
    ) THEN
        CREATE VIEW zq_outbox AS SELECT id, document, created, error FROM zq.inbox;
    END IF;
END $$""",
    """\
CREATE TABLE IF NOT EXISTS zq_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    error text
)""",
    """\
CREATE TABLE IF NOT EXISTS zq_outbox_lane (
    id integer PRIMARY KEY CHECK (id = 1),
    producer text NOT NULL,
    epoch text NOT NULL,
    first bigint NOT NULL,
    ids text NOT NULL
)""",
    """\
DO $$ BEGIN
    IF EXISTS (
        SELECT FROM pg_class WHERE oid = CAST('zq_outbox' AS regclass) AND relkind = 'r'
    ) AND NOT EXISTS (
        SELECT FROM pg_trigger
        WHERE tgname = 'zq_outbox_notify' AND tgrelid = CAST('zq_outbox' AS regclass)
    ) THEN
        CREATE OR REPLACE FUNCTION zq_outbox_notify() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_notify(''zq_outbox'', ''''); RETURN NULL; END';
        CREATE TRIGGER zq_outbox_notify AFTER INSERT OR UPDATE OF error ON zq_outbox
        FOR EACH STATEMENT EXECUTE FUNCTION zq_outbox_notify();
    END IF;
END $$""",
)

_STATEMENTS: dict[Dialect, tuple[str, ...]] = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}

# All documents are one parameter, a list in JSON: that is a text for every driver.
_INSERTS: dict[Dialect, str] = {
    "sqlite": """\
INSERT INTO zq_outbox (document) SELECT value FROM json_each({documents}) ORDER BY key""",
    "postgresql": """\
INSERT INTO zq_outbox (document) SELECT document
FROM json_array_elements_text(CAST(CAST({documents} AS text) AS json))
WITH ORDINALITY AS given (document, place) ORDER BY place""",
}


def dialect_named(name: str) -> Dialect:
    """The dialect of this name. Raises `InvalidOption`."""
    for dialect in get_args(Dialect):
        if name == dialect:
            return dialect  # type: ignore[no-any-return]
    raise InvalidOption(f"the outbox is for SQLite and PostgreSQL; this database is {name!r}")


def statements(dialect: Dialect) -> tuple[str, ...]:
    """The statements that create the tables. They may be repeated."""
    return _STATEMENTS[dialect]


def ddl(dialect: Dialect) -> str:
    """The SQL that creates the tables, as a script for a migration."""
    return "".join(f"{statement};\n" for statement in statements(dialect))


def insert(dialect: Dialect, placeholder: str) -> str:
    """The statement that writes rows. Its parameter is a JSON list of documents."""
    return _INSERTS[dialect].format(documents=placeholder)
