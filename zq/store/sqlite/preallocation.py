"""Allocates blocks of the disk to SQLite's files in advance: no other program can take them.

An acknowledgement needs room in the log. The log begins anew only after the database has had room
for it. Free space assures neither, for another program may take it at any moment. So blocks are
allocated behind the ends of these files. The sizes of the files stay as they are. Where much space
is free, nothing is allocated.

SQLite frees the blocks behind the end of the database with each complete copy of the log, so they
are allocated again after it.
"""

import ctypes
import os
import sys
from pathlib import Path
from typing import NamedTuple

from zq.store.api import SCARCE
from zq.store.sqlite.files import FILE_NAME, SHM_NAME, WAL_NAME

DATABASE_BYTES = 32 * 2**20
"""The most that is allocated for the database: more than a log has whose last commit is the largest
bulk."""

LOG_BYTES = 16 * 2**20
"""The most that is allocated for the log."""

LOG_BYTES_AN_INDEX_BYTE = 64
"""The index of the log has 8 bytes for each of its pages, of 512 bytes at least."""

INDEX_BYTES = 32 * 1024
"""The index of the log grows by as much."""

_KEEP_SIZE = 1
"""Linux's FALLOC_FL_KEEP_SIZE, which Python does not name."""


class _File(NamedTuple):
    descriptor: int
    spare: int
    """The bytes behind the end of the file, wherever that is."""
    whole: int
    """The bytes of the whole file."""


class Preallocation:
    """Blocks for one data directory: of a reserve half for the database, a quarter for its log, and
    a little for the index of the log.

    Systems and file systems that cannot do so get none. Close it after all connections: closing a
    descriptor drops SQLite's locks.
    """

    def __init__(self, directory: Path, reserve: int) -> None:
        """Open the files, which must exist. `reserve` is in bytes. Raises OSError."""
        self._files: list[_File] = []
        self._ends = False
        self._directory = directory
        self._scarce = SCARCE * reserve
        if sys.platform != "linux" or not reserve:
            return
        libc = ctypes.CDLL(None)
        # Where sizes have 32 bits, the plain name takes no others.
        self._allocate = getattr(libc, "fallocate64", None) or libc.fallocate
        self._allocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        log = min(reserve // 4, LOG_BYTES)
        wanted = (
            (FILE_NAME, min(reserve // 2, DATABASE_BYTES), 0),
            (WAL_NAME, 0, log),
            (SHM_NAME, 0, log // LOG_BYTES_AN_INDEX_BYTE + INDEX_BYTES),
        )
        try:
            for name, spare, whole in wanted:
                descriptor = os.open(directory / name, os.O_RDWR | os.O_CLOEXEC)
                self._files.append(_File(descriptor, spare, whole))
        except OSError:
            self.close()
            raise

    def renew(self) -> None:
        """Allocate what is missing, if space is scarce and there is room. It takes some 10 µs."""
        if self._ends or self.free_bytes() >= self._scarce:
            return
        for descriptor, spare, whole in self._files:
            end = os.fstat(descriptor).st_size
            if (size := max(spare, whole - end)) > 0:
                # A failure leaves the space free, as it is without this.
                self._allocate(descriptor, _KEEP_SIZE, end, size)

    def end(self) -> None:
        """Allocate no more: the next copy of the log frees what the database has."""
        self._ends = True

    def free_bytes(self) -> int:
        """The space that an unprivileged writer may use, with the blocks behind the ends of the
        files."""
        disk = os.statvfs(self._directory)
        states = [os.fstat(each.descriptor) for each in self._files]
        own = sum(max(state.st_blocks * 512 - state.st_size, 0) for state in states)
        return disk.f_bavail * disk.f_frsize + own

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop().descriptor)
