"""Makes a data directory from a copied database. It succeeds completely or leaves nothing.

The database is prepared under another name, which no server starts with. It gets its real name
last, so a restore that was cut off can be repeated.
"""

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from zq.model.clock import SteadyClock, SystemClock
from zq.store.errors import DamagedDatabase, DirectoryNotEmpty, StoreDamaged, StoreFull
from zq.store.sqlite.connection import add_functions, disk_error
from zq.store.sqlite.damage import RulesBroken, are_rules, find_damage, mended
from zq.store.sqlite.files import FILE_NAME, LOCK_NAME, RESTORING_NAME, connected, create_private
from zq.store.sqlite.identity import check_meta, lost_in, read_meta, renew_identity
from zq.store.sqlite.lock import DirectoryLock, sync_directory
from zq.store.sqlite.migrate import migrate, refuse_foreign, refuse_newer
from zq.store.sqlite.transaction import SqliteTransaction
from zq.store.sqlite.upkeep import QUERIES, give_back, mark_in

PIECE = 1024 * 1024

Progress = Callable[[int, int], object]
"""Called with the number of bytes written so far and the number in all."""


@contextmanager
def restoring(directory: Path) -> Iterator[Callable[[IO[bytes], int, Progress], None]]:
    """Like `preparing`, but yield a function that writes a copied database; call it once."""
    with preparing(directory) as file:
        yield partial(_write, file)


@contextmanager
def preparing(directory: Path) -> Iterator[Path]:
    """Prepare a directory without a database. Yield the path at which the block makes a database.

    If the block ends well, the database gets its name; otherwise nothing is left. Raises
    `DirectoryInUse`, `DirectoryNotEmpty`, `StoreFull`, `DatabaseTooNew`, `ForeignDatabase`,
    `DamagedDatabase`, `StoreFailed` or OSError.
    """
    existed = directory.exists()
    lock = DirectoryLock(directory)
    try:
        refuse_content(directory, RESTORING_NAME)
        _remove_rest(directory)
        file = directory / RESTORING_NAME
        try:
            yield file
            _make_ready(file)
            file.rename(directory / FILE_NAME)
            sync_directory(directory)
        except BaseException:
            _remove_rest(directory)
            raise
    except BaseException:
        if not existed:
            (directory / LOCK_NAME).unlink()
            directory.rmdir()
        raise
    finally:
        lock.release()


def refuse_content(directory: Path, unfinished: str) -> None:
    """Raise `DirectoryNotEmpty` if it has files of a database that an earlier try has not left."""
    names = (path.name for path in directory.glob(f"{FILE_NAME}*"))
    if others := sorted(name for name in names if not name.startswith(unfinished)):
        raise DirectoryNotEmpty(
            f"{directory} is not empty (it holds {', '.join(others[:3])}): only a directory without"
            f" a database is filled, so name another one, or move its {FILE_NAME}* away"
        )


def refuse_full(directory: Path, size: int) -> None:
    """Raise `StoreFull` if a database of this size has no space."""
    free = shutil.disk_usage(directory).free
    if size > free:
        raise StoreFull(f"{size} bytes are needed, and {free} are free in {directory}")


def _remove_rest(directory: Path) -> None:
    for path in directory.glob(f"{RESTORING_NAME}*"):
        path.unlink()


def _write(file: Path, content: IO[bytes], size: int, progress: Progress) -> None:
    refuse_full(file.parent, size)
    with create_private(file) as target:
        while piece := content.read(PIECE):
            target.write(piece)
            progress(target.tell(), size)
        target.flush()
        os.fsync(target.fileno())


def _make_ready(file: Path) -> None:
    """Check a database, migrate it, and give it another identity than its original's.

    Rows that cannot be read are set aside if that is all that is wrong, as at a start.
    """
    with connected(file) as connection:
        try:
            # The header of a copy asks for a log. What is left in one at the end is lost if SQLite
            # cannot copy it into the file, and SQLite does not say so. A log without other users
            # needs no shared memory, for which a full disk has no space.
            for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = DELETE"):
                connection.execute(f"PRAGMA {pragma}")
            refuse_foreign(connection)
            if refuse_newer(connection) == 0:
                raise DamagedDatabase("the backup is empty: nothing of zq's is in it")
            migrate(connection)
            add_functions(connection)
            now = time.time_ns() // 1_000_000
            transaction = SqliteTransaction(connection, now)
            mended(transaction.mend_stopped, partial(_recover, connection))
        except StoreDamaged as error:
            raise DamagedDatabase(str(error)) from None
        except sqlite3.DatabaseError as error:
            raise disk_error(error, connection) or DamagedDatabase(
                f"the database in the backup is damaged: {error}"
            ) from None
    with file.open("rb") as written:
        os.fsync(written.fileno())


def _recover(connection: sqlite3.Connection) -> None:
    """Check a database, and give it another identity. Raises `StoreDamaged` or sqlite3.Error."""
    if found := find_damage(connection):
        text = (
            f"the database in the backup is damaged: {found[0]}. Unpack it into a directory, and"
            " save what can be read by `zq salvage`"
        )
        raise RulesBroken(text) if are_rules(found) else DamagedDatabase(text)
    _begin_anew(connection)


def _begin_anew(connection: sqlite3.Connection) -> None:
    """Return all jobs that somebody holds, and give the database its own identity."""
    connection.execute("BEGIN IMMEDIATE")
    with contextlib.ExitStack() as undo:
        undo.callback(connection.rollback)
        found = connection.execute(QUERIES["read_all_held"]).fetchone()[0]
        meta = read_meta(connection)
        if lost := lost_in(meta):
            raise DamagedDatabase(f"the database in the backup is damaged: {lost}")
        check_meta("former_suffixes", meta.get("former_suffixes", "[]"))
        mark = mark_in(meta)
        held = msgspec.json.decode(found, type=list[tuple[int, str]])
        give_back(connection, held, SteadyClock(SystemClock(), mark))
        renew_identity(connection)
        connection.execute("COMMIT")
        undo.pop_all()
