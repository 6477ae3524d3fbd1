"""A file that gets its name when it is whole and on the disk; before that nothing is to be seen."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

PRIVATE = 0o600


@contextmanager
def new_file(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """A file for its owner alone to be written. When this ends well, it has its name.

    Otherwise nothing is left of it; nor after a kill, if the file system can have files without a
    name. Raises FileExistsError where there is a file and none is to be replaced, or OSError.
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
    """A new file, and a path that leads to it."""
    try:
        descriptor = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, PRIVATE)
    except OSError:
        # Not every file system has them; the directory may be at fault too, which this tells.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".zq-", suffix=".part") as named:
            yield cast(BinaryIO, named), named.name
        return
    with os.fdopen(descriptor, "r+b") as file:
        yield file, f"/proc/self/fd/{descriptor}"


@contextmanager
def _named(folder: Path, name: str) -> Iterator[Path]:
    """Another name for a file, with which it can replace one."""
    beside = folder / f".zq-{os.getpid()}.part"
    _link(name, beside)
    try:
        yield beside
    finally:
        beside.unlink(missing_ok=True)


def _link(name: str, path: Path) -> None:
    # Python passes on that a link is to be followed only where it passes a directory too; whose
    # number is ignored, for the name is absolute.
    os.link(name, path, src_dir_fd=0, follow_symlinks=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
