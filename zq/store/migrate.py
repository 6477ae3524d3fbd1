"""Brings a database to this version's schema, by numbered scripts in one transaction."""

import secrets
import sqlite3
from collections.abc import Iterator
from importlib.resources import files

from zq.model.ids import ALPHABET, SUFFIX_LENGTH
from zq.store.queries import load


class DatabaseTooNew(Exception):
    """The file was written by a later version, whose rules this one does not know."""


def migrate(connection: sqlite3.Connection) -> None:
    """Run the scripts that the database has not seen. All of them count, or none."""
    scripts = _scripts()
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(scripts):
        raise DatabaseTooNew(
            f"the database has schema version {version}, this zq knows up to {len(scripts)}:"
            " start the newer zq that wrote it"
        )
    if version == len(scripts):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in scripts[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        for name, value in _identity().items():
            connection.execute(load("upkeep.sql")["write_meta"], {"name": name, "value": value})
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _identity() -> dict[str, object]:
    """What is drawn once for a database: its identity and the tail of its ids."""
    return {
        "epoch": secrets.token_hex(16),
        "id_suffix": "".join(secrets.choice(ALPHABET) for _ in range(SUFFIX_LENGTH)),
        "high_water": 0,
    }


def _scripts() -> list[str]:
    folder = files("zq.store").joinpath("migrations")
    scripts = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [script.read_text(encoding="utf-8") for script in scripts]


def _statements(script: str) -> Iterator[str]:
    # `executescript` would commit first; so each statement is run by itself in our transaction.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
