"""The lock of a data directory. The kernel releases it, however its owner ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from zq.private import open_private
from zq.store.errors import DirectoryInUse
from zq.store.sqlite.files import LOCK_NAME

_HELD: set[int] = set()
"""Descriptors of the locks that this process holds."""

_OF_PARENT: set[tuple[int, int]] = set()
"""The files of locks that were held where this process was forked from."""


def _leave_to_parent() -> None:
    """Keep no lock in a fork, where it would outlive its owner."""
    for descriptor in _HELD:
        _OF_PARENT.add(_file(descriptor))
        os.close(descriptor)
    _HELD.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def _file(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


class DirectoryLock:
    """Holds the lock from creation to `release`. Makes the directory if it is missing."""

    def __init__(self, directory: Path) -> None:
        _make(directory)
        self._directory = directory
        self._file = _locked(directory)
        _HELD.add(self._file)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def sync_names(self) -> None:
        """Make the names in the directory survive a power cut. Raises `OSError`.

        SQLite also syncs the directory when it makes a file, but does not report a failure.
        """
        sync_directory(self._directory)

    def release(self) -> None:
        """Let another server have the directory."""
        _HELD.discard(self._file)
        os.close(self._file)


@contextlib.contextmanager
def locked_unchanged(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory within the block, without changing a byte in it.

    Raises `DirectoryInUse`. A directory without the lock's file has never had an owner.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(directory / LOCK_NAME, flags)
    except FileNotFoundError:
        yield
        return
    try:
        _lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    if _file(descriptor) in _OF_PARENT:
        # SQLite still takes the parent's connections for this process's own.
        raise DirectoryInUse(
            f"{directory} was open when this process was forked: open it in another process"
        )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        raise DirectoryInUse(
            f"{directory} is in use by another zq (process {owner}): stop that one, or choose"
            " another --root-dir"
        ) from None


def _locked(directory: Path) -> int:
    """Open the lock's file and lock it. Makes it if it is missing."""
    path = directory / LOCK_NAME
    while True:
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(descriptor, directory)
        except DirectoryInUse:
            os.close(descriptor)
            raise
        # Between the two calls the file may have been removed: then others lock another file.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)


def _make(directory: Path) -> None:
    """Make a directory whose name survives a power cut, as the files synced in it do."""
    if not directory.exists():
        _make(directory.absolute().parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    # An earlier start may have been cut off before this, so an existing directory is synced too. If
    # its parent is not readable, somebody else has made it.
    with contextlib.suppress(PermissionError):
        sync_directory(directory.absolute().parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
