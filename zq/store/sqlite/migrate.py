"""Brings a database to this version's schema, with numbered scripts in one transaction.

A new database begins with what they come to, which is in `schema.sql`: that takes an eighth of the
time. `python -m zq.store.sqlite.migrate` prints the file.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from zq.store.errors import DatabaseTooNew, ForeignDatabase
from zq.store.identity import new_identity
from zq.store.sqlite.connection import is_read_only
from zq.store.sqlite.queries import load
from zq.store.texts import folder

log = logging.getLogger(__name__)

APPLICATION_ID = 0x7A71_6462
"""This mark in the header of the file ("zqdb") is shown by `file` and by SQLite's tools."""

_HEAD = b"SQLite format 3\0"
"""A database begins with it."""

_MARKED_AT = 68
"""The place of the mark in the header (https://www.sqlite.org/fileformat.html)."""

_OURS = frozenset({"meta", "jobs", "queue_counts"})


def latest_version() -> int:
    """The version of the schema that this zq writes."""
    return len(_scripts())


def refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raise `ForeignDatabase` if the tables are not zq's. This changes nothing."""
    mark: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if mark == APPLICATION_ID:
        return
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    # Databases before version 5 have no mark.
    if mark or (tables and not tables >= _OURS):
        shown = ", ".join(sorted(tables)[:3]) or "no tables"
        raise ForeignDatabase(
            f"the database is not zq's (application_id {mark}; it has {shown}): move it away, or"
            " choose another --root-dir"
        )


def refuse_foreign_file(path: Path) -> None:
    """Do the same for a file that nobody has open, if it exists."""
    try:
        with path.open("rb") as file:
            header = file.read(_MARKED_AT + 4)
    except FileNotFoundError:
        return
    if header.startswith(_HEAD) and header[_MARKED_AT:] == APPLICATION_ID.to_bytes(4, "big"):
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as reader:
            refuse_foreign(reader)
    except sqlite3.OperationalError as error:
        if not is_read_only(error):
            raise
        # A power cut can leave a transaction half done while a file is made. To read the file,
        # SQLite has to undo that first.
        with closing(sqlite3.connect(path)) as connection:
            refuse_foreign(connection)


def refuse_newer(connection: sqlite3.Connection) -> int:
    """Return the version of the schema. Raises `DatabaseTooNew`."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > latest_version():
        raise DatabaseTooNew(
            f"the database has schema version {version}, this zq knows up to {latest_version()}:"
            " start the newer zq that wrote it"
        )
    return version


def migrate(connection: sqlite3.Connection, upto: int | None = None) -> None:
    """Run the scripts that the database has not seen, `upto` a version: all of them, or none."""
    scripts = _scripts()[:upto]
    version = refuse_newer(connection)
    if version == len(scripts):
        return
    is_new = version == 0 and upto is None
    if version:
        log.info("migrating the database", extra={"fields": {"from": version, "to": len(scripts)}})
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in [_schema()] if is_new else scripts[version:]:
            for statement in _statements(script.read_text(encoding="utf-8")):
                connection.execute(statement)
        for name, value in {**new_identity(), "high_water": 0}.items():
            connection.execute(
                load("zq.store.sqlite.upkeep")["write_meta"], {"name": name, "value": value}
            )
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def printed_schema() -> str:
    """What all scripts make of an empty database: its tables, and the rows that are in them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        migrate(made, latest_version())
        made.execute("DELETE FROM meta")  # which is another one for each database
        ours = "sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        found = made.execute(f"SELECT sql FROM sqlite_master WHERE {ours} ORDER BY rowid")
        tables = [f"{sql};" for (sql,) in found]
        rows = [line for line in made.iterdump() if line.startswith("INSERT")]
    return "\n".join([*tables, *rows])


def _schema() -> Path:
    return folder("zq.store.sqlite") / "schema.sql"


def _scripts() -> list[Path]:
    files = (folder("zq.store.sqlite") / "migrations").iterdir()
    return sorted((f for f in files if f.name.endswith(".sql")), key=lambda f: f.name)


def _statements(script: str) -> Iterator[str]:
    # `executescript` would commit first, so each statement runs by itself in our transaction.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


if __name__ == "__main__":
    print(printed_schema())
