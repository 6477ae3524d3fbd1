"""Opens the database of a stopped server for reading, without changing a byte in its directory."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from zq.store.errors import StoreFull
from zq.store.sqlite.files import FILE_NAME, SHM_NAME, WAL_NAME

_JOURNAL_NAME = f"{FILE_NAME}-journal"


@contextmanager
def opened_unchanged(directory: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees what a start would find. Hold the directory's lock meanwhile.

    A database without a log is opened as an immutable file. One with a log and its shared memory
    is opened in place: SQLite then makes the index of the log in its own memory. Otherwise SQLite
    would have to write, so it gets a copy. Raises `StoreFull` if there is no space for that, or
    OSError.
    """
    file = directory / FILE_NAME
    has_log = _size(directory / WAL_NAME) > 0
    if _size(directory / _JOURNAL_NAME) or (has_log and not (directory / SHM_NAME).exists()):
        with TemporaryDirectory(prefix="zq-") as folder:
            _copy(directory, Path(folder))
            with closing(sqlite3.connect(Path(folder) / FILE_NAME, isolation_level=None)) as copy:
                yield copy
        return
    how = "mode=ro&readonly_shm=1" if has_log else "mode=ro&immutable=1"
    uri = f"{file.absolute().as_uri()}?{how}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        yield connection


def _copy(directory: Path, folder: Path) -> None:
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
