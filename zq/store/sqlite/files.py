"""The files of a data directory: theirs alone who own it, and the ones that were opened."""

import contextlib
import os
from pathlib import Path

from zq.store.errors import FilesMoved

FILE_NAME = "zq.db"
WAL_NAME = f"{FILE_NAME}-wal"
SHM_NAME = f"{FILE_NAME}-shm"
LOCK_NAME = "zq.lock"
COPY_NAME = f"{FILE_NAME}.copy"
"""The name of a backup's copy for the moment in which it is opened."""

PRIVATE = 0o600


class OpenFiles:
    """Which files were opened, so that it can be told later whether they still have their names.

    It asks for the state of names only: closing a descriptor of a database would drop SQLite's
    locks on it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = os.fspath(directory)
        self._names: tuple[int, int, int] | None = None
        paths = [directory / name for name in (FILE_NAME, WAL_NAME, SHM_NAME, LOCK_NAME)]
        self._identities = [(os.fspath(path), _identity(os.fspath(path))) for path in paths]

    def glance(self) -> None:
        """The same as `check`, but only where names in the directory have changed: for every tick.

        Its time tells of that as finely as the kernel's clock ticks, some milliseconds.
        """
        try:
            found = os.stat(self._directory)  # noqa: PTH116
            names = (found.st_dev, found.st_ino, found.st_mtime_ns)
        except FileNotFoundError:
            names = None
        if names is None or names != self._names:
            self.check()
            self._names = names

    def check(self) -> None:
        """Raise `FilesMoved` where one of them is gone or another one."""
        for path, identity in self._identities:
            if _identity(path) != identity:
                raise FilesMoved(Path(path))


def make_private(directory: Path) -> None:
    """Make the database's file where it is missing; let nobody but its owner read any of them.

    SQLite gives the log and its index the mode of the database. To be called before SQLite has
    opened any of them.
    """
    with contextlib.suppress(FileExistsError):
        create_private(directory / FILE_NAME)
    for name in (FILE_NAME, WAL_NAME, SHM_NAME):
        # Somebody else's are as their owner wants them.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            (directory / name).chmod(PRIVATE)


def create_private(path: Path) -> None:
    """Make an empty file for its owner alone, whatever the umask. Raises `OSError`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    try:
        os.fchmod(descriptor, PRIVATE)
    finally:
        os.close(descriptor)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (once a second, four of them)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
