"""Who may have a database of PostgreSQL: it must be fit for zq, and nobody else may have it."""

import logging
import time
from collections.abc import Collection, Iterator
from contextlib import suppress

from psycopg import errors

from zq.model.ids import SLOTS
from zq.store.errors import (
    DirectoryInUse,
    Fenced,
    ForeignDatabase,
    RestoreUnfinished,
    StoreAway,
)
from zq.store.moving import MARK
from zq.store.postgres.connection import POOLER, SCHEMA, Connection

log = logging.getLogger(__name__)

LOCK_CLASS = 0x7A71
"""Advisory locks of zq ("zq"), one a slot. Whoever has one lost its tick's connection, and with it
the lock, before another server can have it: so a fenced server cannot commit."""

KEY_CLASS = LOCK_CLASS + 1
"""Advisory locks of unique keys, by their hashes."""

WATCHED = 32
"""The lock of a slot plus this is that of its server's second connection. While it is held, the
server is alive although the connection of its ticks may be lost."""

USE = 100
"""The lock of a database's use: of one server, or shared by all that share the database."""

LEADING = 102
"""The lock of the server that does what one does for all that share the database. Its second
connection has it."""

OLDEST_VERSION = 15

PATIENCE_S = 2.0
"""So long a start tries to take its locks: PostgreSQL may still have to end the process of a server
that was killed, or that has closed its connection."""

GRACE_S = 8.0
"""So long others may take to connect again after an outage of PostgreSQL: until then, a server that
connects again takes none for dead, and one that starts waits for them."""

PAUSE_S = 0.02

TRIES = 5
"""How often the lock is tried while PostgreSQL ends the process of a lost connection, with a second
in between."""


def refuse_unfit(connection: Connection) -> None:
    """Raise `ForeignDatabase` if this is no PostgreSQL that can hold what zq stores."""
    told = str(value_of(connection, "SELECT version()"))
    if not told.startswith("PostgreSQL "):
        raise ForeignDatabase(f"this is no PostgreSQL but {told.split(',')[0]}: choose another")
    version = connection.info.server_version // 10_000
    if version < OLDEST_VERSION:
        raise ForeignDatabase(
            f"this is PostgreSQL {version}, and zq needs {OLDEST_VERSION} or newer"
        )
    if (
        value_of(
            connection,
            "SELECT pg_encoding_to_char(encoding) FROM pg_database"
            " WHERE datname = current_database()",
        )
        != "UTF8"
    ):
        raise ForeignDatabase("the database is not encoded in UTF8: create one that is")


def refuse_pooler(connection: Connection, other: Connection) -> None:
    """Raise `ForeignDatabase` if transactions of these two connections run on one of PostgreSQL.

    `connection` rests meanwhile, so a pooler in transaction mode has lent what it had to others,
    who would have its locks, its settings and its prepared statements.
    """
    # A statement that one has prepared there stands in the way of the other's.
    connection.prepare_threshold = other.prepare_threshold = None
    asked = "SELECT pg_backend_pid()"
    own = value_of(connection, asked)
    with other.transaction():
        # A pooler may have one connection alone, for which a second question would wait.
        is_pooled = value_of(other, asked) == own or value_of(connection, asked) != own
    if is_pooled or value_of(connection, "SHOW search_path") != SCHEMA:
        raise ForeignDatabase(POOLER)
    connection.prepare_threshold = 0


def lock(connection: Connection, *, shares: bool = False) -> None:
    """Take the database for as long as the connection lives: alone, or with others that share it.

    Servers that an outage of PostgreSQL has cut off are waited for. Raises `DirectoryInUse`.
    """
    _await_others(connection)
    for _ in _tries(PATIENCE_S):
        if _takes(connection, USE, shares=shares):
            return
    raise DirectoryInUse(
        "another server has this database for itself: start it with --servers N too, or"
        " choose another database"
        if shares
        else "another server uses this database: stop it, or choose another one"
    )


def lock_slot(connection: Connection, slots: int) -> int:
    """Take the lock of the first slot that is free. Raises `DirectoryInUse`."""
    for _ in _tries(PATIENCE_S):
        for slot in range(slots):
            if _takes(connection, slot):
                return slot
    raise DirectoryInUse(
        f"{slots} servers use this database: --servers says how many may, up to {SLOTS}"
    )


def _await_others(connection: Connection) -> None:
    """Wait until no server is listed that was connected to PostgreSQL before its last start.

    So it is if a standby has taken over, which was started at another time.
    """
    cut_off = "SELECT count(*) FROM servers WHERE postmaster <> pg_postmaster_start_time()"
    with suppress(errors.UndefinedTable, errors.UndefinedColumn):
        for _ in _tries(GRACE_S):
            if not value_of(connection, cut_off):
                return
        log.warning("servers that had this database did not connect again, and count as dead")


def _tries(seconds: float) -> Iterator[None]:
    """One or more, with pauses in between, for some time."""
    ends = time.monotonic() + seconds
    yield
    while time.monotonic() < ends:
        time.sleep(PAUSE_S)
        yield


def _takes(connection: Connection, key: int, *, shares: bool = False) -> bool:
    how = "_shared" if shares else ""
    return bool(value_of(connection, f"SELECT pg_try_advisory_lock{how}({LOCK_CLASS}, {key})"))


def refuse_unfinished(connection: Connection) -> None:
    """Raise `RestoreUnfinished` if a move into the database was cut off."""
    if is_unfinished(connection):
        raise RestoreUnfinished(
            "a move into this database did not end: run `zq move` again, which goes on from there,"
            " or begin without data after DROP SCHEMA zq CASCADE"
        )


def is_unfinished(connection: Connection) -> bool:
    """True if the database is the target of a move that is not complete."""
    return bool(value_of(connection, f"SELECT count(*) FROM meta WHERE name = '{MARK}'"))


def take_over(
    connection: Connection, slot: int, formers: Collection[object], *, shares: bool = False
) -> None:
    """Take the locks of a slot for the processes that lost connections had in PostgreSQL.

    One may not have noticed yet, so it is ended: its transaction ends before the lock is free.
    Raises `Fenced` if another server has the lock, `StoreAway` if the process does not end.
    """
    for _ in range(TRIES):
        if _takes(connection, slot):
            if not _takes(connection, USE, shares=shares):
                raise Fenced("another server has the database since the connection was lost")
            return
        holder = value_of(
            connection,
            f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = {LOCK_CLASS}"
            f" AND objid = {slot} AND objsubid = 2 AND granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        if holder in formers:
            value_of(connection, f"SELECT pg_terminate_backend({holder}, 1000)")
        elif holder is not None:
            raise Fenced("another server has the database since the connection was lost")
    raise StoreAway("PostgreSQL has not ended the lost connection yet")


def value_of(connection: Connection, sql: str) -> object:
    """The single value that a query answers; None if it answers no row."""
    row = connection.execute(sql.encode()).fetchone()
    return None if row is None else row[0]
