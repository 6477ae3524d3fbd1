"""Brings a database to this version's schema, with numbered scripts in one transaction."""

import logging

from psycopg import errors

from zq.store.errors import DatabaseTooNew, DirectoryInUse
from zq.store.identity import new_identity
from zq.store.postgres.connection import SCHEMA, Connection
from zq.store.postgres.owning import LOCK_CLASS, USE, value_of
from zq.store.texts import folder

log = logging.getLogger(__name__)

_MIGRATING = 101
"""The advisory lock of who changes the tables."""


def latest_version() -> int:
    """The version of the schema that this zq writes."""
    return len(_scripts())


def migrate(connection: Connection) -> None:
    """Bring the schema to the latest version. Raises `DatabaseTooNew`."""
    version = version_of(connection)
    if version > latest_version():
        raise DatabaseTooNew(
            f"the database has schema version {version}, this zq knows up to {latest_version()}:"
            " start a version of zq that is at least as new as the one that wrote it"
        )
    scripts = _scripts()[version:]
    if not scripts:
        return
    if version:
        log.info(
            "migrating the database", extra={"fields": {"from": version, "to": latest_version()}}
        )
    with connection.transaction():
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
        for script in scripts:
            connection.execute(script.encode(), prepare=False)
        if not version:
            for name, value in {**new_identity(), "high_water": "0"}.items():
                insert = "INSERT INTO meta (name, value) VALUES ($1, $2)"
                connection.execute(insert, (name, value))
        note = (
            "INSERT INTO meta (name, value) VALUES ('version', $1)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        connection.execute(note, (str(latest_version()),))


def migrate_shared(connection: Connection) -> None:
    """Bring the schema to the latest version, unless servers of an earlier one use the database.

    Servers that begin at the same time do so one after the other. Raises `DirectoryInUse` too.
    """
    value_of(connection, f"SELECT pg_advisory_lock({LOCK_CLASS}, {_MIGRATING})")
    try:
        if 0 < version_of(connection) < latest_version():
            if not value_of(connection, f"SELECT pg_try_advisory_lock({LOCK_CLASS}, {USE})"):
                raise DirectoryInUse(
                    "servers of another version use this database: stop them before one of this"
                    " version changes its tables"
                )
            value_of(connection, f"SELECT pg_advisory_unlock({LOCK_CLASS}, {USE})")
        migrate(connection)
    finally:
        if not connection.closed:
            value_of(connection, f"SELECT pg_advisory_unlock({LOCK_CLASS}, {_MIGRATING})")


def version_of(connection: Connection) -> int:
    """The version of the schema; 0 if there is none."""
    try:
        with connection.transaction():
            row = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    except errors.UndefinedTable:
        return 0
    return int(str(row[0])) if row else 0


def _scripts() -> list[str]:
    files = sorted((folder("zq.store.postgres") / "migrations").glob("*.sql"))
    return [file.read_text(encoding="utf-8") for file in files]
