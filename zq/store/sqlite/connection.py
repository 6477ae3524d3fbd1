"""Connections to the database: the writer, the readers, and the reasons for their settings."""

import errno
import logging
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

import aiosqlite

from zq.model.checksums import record_checksum
from zq.store.errors import StoreBusy, StoreDamaged, StoreError, StoreFailed, StoreFull

# Its debug lines would contain whole ticks, payloads included.
logging.getLogger("aiosqlite").setLevel(logging.INFO)

P = ParamSpec("P")
T = TypeVar("T")

PAGE_BYTES = 4096
"""The pages of a new database. Smaller ones wear a card less, and cost bulks more."""

PROGRESS_STEPS = 10_000
"""How many instructions of SQLite's machine run between two looks at the clock: far below 1 ms."""

TRIED_BYTES = 64 * 1024
"""The bytes that are written to see whether a quota allows it: more than a commit of a few jobs."""

# SQLite's primary result codes, the low byte of `sqlite_errorcode`
# (https://www.sqlite.org/rescode.html).
_READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _PROTOCOL, _NOTADB = 8, 10, 11, 13, 14, 15, 26
_BUSY, _INTERRUPT = 5, 9
_DISK_FAILURES = frozenset({_READONLY, _IOERR, _CORRUPT, _CANTOPEN, _NOTADB})

# SQLite answers PROTOCOL if other connections were quicker again and again for some seconds.
_OTHERS_LOCKS = frozenset({_BUSY, _PROTOCOL})

WRITER_PRAGMAS = {
    # Readers see the last commit while the writer works.
    "journal_mode": "WAL",
    # A commit writes to the log and returns. `zq.store.sqlite.flush` decides who flushes it,
    # and when. SQLite itself flushes only around checkpoints.
    "synchronous": "NORMAL",
    # Debian builds SQLite with this on: it overwrites what is deleted, which doubles the WAL.
    "secure_delete": "OFF",
    # The writer checkpoints after the answers are sent, not during a commit.
    "wal_autocheckpoint": "0",
    # A WAL that grew while it could not be copied gives its space back at the next reset.
    "journal_size_limit": str(64 * 1024 * 1024),
    # Temporary data of sorts never touches the disk.
    "temp_store": "MEMORY",
}

WRITER_STATEMENTS = 512
"""How many statements stay prepared: a tick has many."""

READER_STATEMENTS = 64
"""Readers have few statements, except for the lists of names in filters. A prepared statement keeps
its last parameters in memory."""

READER_PRAGMAS = {
    "query_only": "ON",
    "temp_store": "MEMORY",
}


class HopConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function on its thread in one hop.

    Each call of aiosqlite crosses to its thread and back (68 µs), and a tick is many calls. Version
    0.22 has no public way to run a function there, so this uses the method behind its own calls.
    """

    async def hop(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in the connection's thread."""
        call = _ThreadCall(partial(function, *args, **kwargs))
        await self._execute(call)  # type: ignore[no-untyped-call]
        return call.take()

    @property
    def raw(self) -> sqlite3.Connection:
        """The connection itself, for functions that run in its thread."""
        return self._conn


class _ThreadCall(Generic[T]):
    """A call for a thread. The thread keeps its last call until the next, so the call forgets."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: list[Callable[[], T]] = [call]
        self._result: list[T] = []

    def __call__(self) -> None:
        self._result.append(self._call.pop()())

    def take(self) -> T:
        """Take the result. This works once."""
        return self._result.pop()


class Deadline:
    """Ends the statements of a function once its time is up, or earlier if nobody waits any more.

    SQLite checks it between instructions. An interrupt could come between two statements and be
    missed; this cannot.
    """

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def expire(self) -> None:
        """End the time now."""
        self._at = float("-inf")

    def bound(self, connection: sqlite3.Connection, function: Callable[[], T]) -> T:
        """Run a function under the deadline, in the connection's thread."""
        connection.set_progress_handler(lambda: time.monotonic() > self._at, PROGRESS_STEPS)
        try:
            return function()
        finally:
            connection.set_progress_handler(None, 0)


def wait_for_nobody(connection: sqlite3.Connection) -> None:
    """Let a connection never wait, once it is open, so that the event loop can use it.

    The engine tries again while another program holds a lock: see `zq.engine.foreign_lock`.
    """
    connection.execute("PRAGMA busy_timeout = 0")


def in_snapshot(connection: sqlite3.Connection, function: Callable[[], T]) -> T:
    """Run a function whose queries all see the same moment, in the connection's thread."""
    connection.execute("BEGIN")
    try:
        return function()
    finally:
        # A failing disk may have ended the transaction already: this does nothing then.
        connection.rollback()


async def open_writer(path: Path, cache_bytes: int, page_bytes: int) -> HopConnection:
    """Open the only connection that writes and checkpoints, on a new or an existing file.

    A new file gets pages of `page_bytes`. An existing one keeps its own.

    Two such connections would race: SQLite before 3.51.3 can corrupt a WAL that one connection
    resets while another commits.
    """
    pragmas = {**WRITER_PRAGMAS, "cache_size": str(-(cache_bytes // 1024))}
    connection = await _open(path, pragmas, WRITER_STATEMENTS, page_bytes)
    await connection.hop(add_functions, connection.raw)
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Let statements that make their own texts store the checksums of these."""
    connection.create_function("record_checksum", 2, record_checksum, deterministic=True)


async def open_reader(path: Path) -> HopConnection:
    """Open a connection that cannot write."""
    return await _open(path, READER_PRAGMAS, READER_STATEMENTS)


def is_full(error: sqlite3.Error, connection: sqlite3.Connection | None = None) -> bool:
    """True if the disk is full. The transaction is lost, but the database is sound.

    With the `connection` of the error, a quota that is used up counts too. SQLite takes that for a
    broken disk, and Python does not tell the system's error. So a file beside the database is
    tried.
    """
    if connection and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_WRITE:
        return _quota_is_used_up(connection)
    return _primary_code(error) == _FULL


def is_corrupt(error: sqlite3.Error) -> bool:
    """True if a page does not hold what it should."""
    return _primary_code(error) == _CORRUPT


def is_no_database(error: sqlite3.Error) -> bool:
    """True if the header of the file is not one of a database."""
    return _primary_code(error) == _NOTADB


def is_busy(error: sqlite3.Error) -> bool:
    """True if another program has the database locked."""
    return _primary_code(error) in _OTHERS_LOCKS


def is_read_only(error: sqlite3.Error) -> bool:
    """True if a connection that may only read had to write."""
    return _primary_code(error) == _READONLY


def is_interrupt(error: sqlite3.Error) -> bool:
    """True if a read was stopped by its deadline."""
    return _primary_code(error) == _INTERRUPT


def stops_the_server(error: sqlite3.Error) -> bool:
    """True if this connection must not write any more.

    After a failed write or sync the page cache and the disk may differ, so a retry could succeed
    and still lose data (https://www.usenix.org/conference/atc20/presentation/rebello).
    """
    return _primary_code(error) in _DISK_FAILURES


def on_bad_page(what: str) -> str:
    """The message about a page that zq cannot do without, and the remedy."""
    return (
        f"a page of the database is damaged ({what}), and the rest cannot do without it: put back a"
        " copy of the directory, or save what can be read, by `zq salvage OLD NEW` or by a start"
        " with --on-damage salvage. A salvage reads rows without indexes and builds these anew: if"
        " only an index is damaged, nothing is lost"
    )


def store_error(
    error: OSError | sqlite3.Error | StoreError, connection: sqlite3.Connection | None = None
) -> StoreError:
    """Translate an error of SQLite or of the disk into the store's own.

    With the `connection` of the error, a quota that is used up is a full disk, and the error of a
    broken one names the file.
    """
    if isinstance(error, StoreError):
        return error
    if isinstance(error, sqlite3.Error) and (is_corrupt(error) or is_no_database(error)):
        return StoreDamaged(on_bad_page(str(error)))
    if isinstance(error, sqlite3.Error) and is_full(error, connection):
        return StoreFull(str(error))
    if isinstance(error, OSError) or stops_the_server(error):
        return StoreFailed(f"{_file_of(connection)}: {error}" if connection else str(error))
    if is_busy(error):
        return StoreBusy("another program holds its lock, such as a sqlite3 shell or a backup tool")
    return StoreError(str(error))


def disk_error(error: sqlite3.Error, connection: sqlite3.Connection) -> StoreError | None:
    """The store's own error if the disk is full or fails; None for all else, such as damage."""
    found = store_error(error, connection)
    is_of_disk = isinstance(found, StoreFull | StoreFailed) and not isinstance(found, StoreDamaged)
    return found if is_of_disk else None


@contextmanager
def store_errors(connection: sqlite3.Connection) -> Iterator[None]:
    """Raise the errors of a connection and of the disk as the store's own within the block."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise store_error(error, connection) from error


def _file_of(connection: sqlite3.Connection) -> Path:
    return Path(connection.execute("PRAGMA database_list").fetchone()[2])


def _quota_is_used_up(connection: sqlite3.Connection) -> bool:
    try:
        with tempfile.TemporaryFile(dir=_file_of(connection).parent) as file:
            file.write(bytes(TRIED_BYTES))
            file.flush()
    except OSError as error:
        return error.errno == errno.EDQUOT
    return False


def _primary_code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


async def _open(
    path: Path, pragmas: Mapping[str, str], statements: int, page_bytes: int = PAGE_BYTES
) -> HopConnection:
    def connector() -> sqlite3.Connection:
        # zq begins transactions itself. The event loop also uses the writer, while its thread has
        # nothing to do: SQLite locks a connection anyway.
        return sqlite3.connect(
            path, isolation_level=None, cached_statements=statements, check_same_thread=False
        )

    connection = HopConnection(connector, iter_chunk_size=64)
    await connection
    try:
        await connection.hop(_set_pragmas, connection.raw, pragmas, page_bytes)
    except BaseException:
        await connection.close()
        raise
    return connection


def _set_pragmas(
    connection: sqlite3.Connection, pragmas: Mapping[str, str], page_bytes: int = PAGE_BYTES
) -> None:
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
        # Only a new file accepts these. The second lets free space be given back in slices.
        connection.execute(f"PRAGMA page_size = {page_bytes}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    for name, value in pragmas.items():
        row = connection.execute(f"PRAGMA {name} = {value}").fetchone()
        if name == "journal_mode" and row[0] != "wal":
            raise sqlite3.OperationalError(
                "this file system cannot hold a write-ahead log (WAL): choose a local one"
            )
