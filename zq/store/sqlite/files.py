"""The files of a data directory: their names, permissions, and how to read them unchanged."""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from zq.private import open_private
from zq.store.errors import RestoreUnfinished, StoreFull

FILE_NAME = "zq.db"
WAL_NAME = f"{FILE_NAME}-wal"
SHM_NAME = f"{FILE_NAME}-shm"
LOCK_NAME = "zq.lock"
COPY_NAME = f"{FILE_NAME}.copy"
"""The name of a backup's copy while it is being opened."""

RESTORING_NAME = f"{FILE_NAME}.restoring"
"""The name of a database that a restore has not finished."""

MOVING_NAME = f"{FILE_NAME}.moving"
"""The name of a database that a move has not finished."""


def refuse_unfinished(directory: Path) -> None:
    """Raise `RestoreUnfinished` if a restore or a move was cut off."""
    if (directory / RESTORING_NAME).exists():
        raise RestoreUnfinished(
            f"a restore into {directory} did not end: run `zq restore` again, or remove"
            f" {directory / RESTORING_NAME}* to begin without data"
        )
    if (directory / MOVING_NAME).exists():
        raise RestoreUnfinished(
            f"a move into {directory} did not end: run `zq move` again, which goes on from there,"
            f" or remove {directory / MOVING_NAME}* to begin without data"
        )


def make_private(directory: Path) -> None:
    """Make the database's file if it is missing. Let only its owner read the files.

    SQLite gives the log and its index the mode of the database. Call this before SQLite opens any
    of them. Raises `OSError` if one of them is a link.
    """
    with contextlib.suppress(FileExistsError):
        create_private(directory / FILE_NAME).close()
    for name in (FILE_NAME, WAL_NAME, SHM_NAME):
        # A database that has another name too, as a copy by links has, keeps its mode.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.close(open_private(directory / name, os.O_RDONLY))


def create_private(path: Path) -> BinaryIO:
    """Make an empty file for its owner alone, and open it to write. Raises `OSError`."""
    return os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database that exists.

    Raises `OSError` if it cannot be opened, or if its name is a link: SQLite itself follows one,
    and makes a missing file.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        opened = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise OSError(f"{path}: {error}") from None
    with closing(opened) as connection:
        # This pragma reads nothing of the file, which may be damaged. Its path may be no UTF-8.
        connection.text_factory = bytes
        *_, file = connection.execute("PRAGMA database_list").fetchone()
        connection.text_factory = str
        if file != os.fsencode(path.parent.resolve() / path.name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
        yield connection


_JOURNAL_NAME = f"{FILE_NAME}-journal"


@contextmanager
def opened_unchanged(directory: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees what a start would find. Hold the directory's lock meanwhile.

    A database without a log is opened as an immutable file. One with a log and its shared memory
    is opened in place: SQLite then makes the index of the log in its own memory. Otherwise SQLite
    would have to write, so it gets a copy. Raises `StoreFull` if there is no space for that, or
    OSError.
    """
    from tempfile import TemporaryDirectory

    file = directory / FILE_NAME
    has_log = _size(directory / WAL_NAME) > 0
    if _size(directory / _JOURNAL_NAME) or (has_log and not (directory / SHM_NAME).exists()):
        with TemporaryDirectory(prefix="zq-") as folder:
            copy_files(directory, Path(folder))
            with closing(sqlite3.connect(Path(folder) / FILE_NAME, isolation_level=None)) as copy:
                yield copy
        return
    how = "mode=ro&readonly_shm=1" if has_log else "mode=ro&immutable=1"
    uri = f"{file.absolute().as_uri()}?{how}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        yield connection


def copy_files(directory: Path, folder: Path) -> None:
    """Copy a database with its log. Raises `StoreFull` or OSError."""
    import shutil

    paths = [directory / name for name in (FILE_NAME, WAL_NAME, _JOURNAL_NAME)]
    needed, free = sum(map(_size, paths)), shutil.disk_usage(folder).free
    if needed > free:
        raise StoreFull(
            f"a copy of the database and its log is needed to read them unchanged: {needed} bytes,"
            f" and {free} are free in {folder.parent}. Set TMPDIR to a directory with more space"
        )
    for path in paths:
        if path.exists():
            shutil.copyfile(path, folder / path.name)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
