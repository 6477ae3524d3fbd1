"""Writes a file that gets its name when it is complete and on the disk. Before, it is invisible."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

PRIVATE = 0o600


@contextmanager
def new_file(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Write a file for its owner alone. It gets its name if the block ends without an error.

    Otherwise nothing of it is left; nor after a kill, if the file system supports files without a
    name. Raises FileExistsError if the file exists and must not be replaced, or OSError.
    """
    if not replace and os.path.lexists(path):
        raise FileExistsError(path)
    folder = path.absolute().parent
    with _opened(folder) as (file, name):
        yield file
        file.flush()
        os.fsync(file.fileno())
        if replace:
            with _named(folder, name) as beside:
                beside.replace(path)
        else:
            _link(name, path)
        _sync(folder)


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[BinaryIO, str]]:
    """A new file, and a path to it."""
    try:
        descriptor = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, PRIVATE)
    except OSError:
        # Not every file system supports them. If the directory is at fault, the next line shows it.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".zq-", suffix=".part") as named:
            yield cast(BinaryIO, named), named.name
        return
    with os.fdopen(descriptor, "r+b") as file:
        yield file, f"/proc/self/fd/{descriptor}"


@contextmanager
def _named(folder: Path, name: str) -> Iterator[Path]:
    """Another name for a file, under which it can replace an existing one."""
    beside = folder / f".zq-{os.getpid()}.part"
    _link(name, beside)
    try:
        yield beside
    finally:
        beside.unlink(missing_ok=True)


def _link(name: str, path: Path) -> None:
    # Python passes the flag to follow a link on only if it also passes a directory. The number of
    # the directory is ignored, since the name is absolute.
    os.link(name, path, src_dir_fd=0, follow_symlinks=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
