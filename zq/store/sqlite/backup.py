"""Copies a database while it is in use, slice by slice, with the connection that writes.

SQLite's backup holds no lock between two slices: ticks and checkpoints go on, so the write-ahead
log does not grow. Changes by the same connection also go into the part that is already copied. Thus
the copy shows the moment at which its last slice ends, however long the others took.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import BinaryIO

from zq.store.errors import StoreBusy, StoreError, StoreFull
from zq.store.sqlite.connection import HopConnection, is_full
from zq.store.sqlite.files import create_private

PAGES = 256
"""The pages of a slice: 1 MiB. A tick waits for at most one slice."""

PAUSE_S = 0.001
"""The pause between two slices, and before another try while a tick is under way."""

SYNC_SLICES = 16
"""How many slices are copied between two flushes of the copy. The kernel then never has much of it
to write when the flush of a tick has to wait for it."""

MOST_RESTARTS = 3
"""How often the copy may begin anew because another program has written to the database."""

PRAGMAS = (
    # A copy that is not finished is thrown away, so nothing has to be undone in it.
    "journal_mode = OFF",
    "synchronous = OFF",
    "locking_mode = EXCLUSIVE",
    "cache_size = -8192",
)


class GivenUp(StoreError):
    """Nobody waits for the copy any more, or the store is being closed."""

    def __init__(self) -> None:
        super().__init__("the copy was given up")


class Copies:
    """The copies in the making. A copy's file is called `path` while it is being opened."""

    def __init__(self, writer: HopConnection, path: Path, free_bytes: Callable[[], int]) -> None:
        self._writer = writer
        self._path = path
        self._free_bytes = free_bytes
        self._copying: set[_Copying] = set()

    async def make(self, least_free: int) -> BinaryIO:
        """Make one copy: see `zq.store.api.Store.backup`."""

        def may_go_on() -> None:
            if self._free_bytes() < least_free:
                raise StoreFull("a copy would take the space that is to stay free")

        copying = _Copying(self._path, may_go_on)
        self._copying.add(copying)
        try:
            return await copying.run(self._writer)
        finally:
            self._copying.discard(copying)

    async def stop(self) -> None:
        """Give all copies up: the connection is about to be closed."""
        for copying in tuple(self._copying):
            await copying.stop()


class _Copying:
    """One copy: a file for its owner alone that has no name while it is filled.

    Nothing of it is left, however the process ends.
    """

    def __init__(self, path: Path, may_go_on: Callable[[], None]) -> None:
        """`may_go_on` raises if the copy must stop."""
        self._path = path
        self._may_go_on = may_go_on
        self._is_wanted = True
        self._copied = 0
        self._restarts = 0
        self._slices = 0
        self._file: BinaryIO
        self._work: asyncio.Future[BinaryIO] | None = None

    async def run(self, writer: HopConnection) -> BinaryIO:
        """The copy, at its start. Raises `StoreError`, OSError or the error of `may_go_on`."""
        self._work = asyncio.ensure_future(asyncio.to_thread(self._make, writer.raw))
        try:
            return await asyncio.shield(self._work)
        except sqlite3.Error as error:
            if is_full(error):
                raise StoreFull(str(error)) from error
            # The next tick finds out whether the database is still usable.
            raise StoreError(f"no copy could be made: {error}") from error
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Give the copy up. Return once the connection is no longer in use."""
        self._is_wanted = False
        if self._work is not None:
            (found,) = await asyncio.gather(self._work, return_exceptions=True)
            if not isinstance(found, BaseException):
                found.close()

    def _make(self, source: sqlite3.Connection) -> BinaryIO:
        self._path.unlink(missing_ok=True)
        create_private(self._path).close()
        try:
            target = sqlite3.connect(self._path, isolation_level=None)
            self._file = self._path.open("rb")
        finally:
            self._path.unlink()
        try:
            with closing(target):
                for pragma in PRAGMAS:
                    target.execute(f"PRAGMA {pragma}")
                source.backup(target, pages=PAGES, progress=self._after_slice, sleep=PAUSE_S)
            if not self._is_wanted:
                raise GivenUp
        except BaseException:
            self._file.close()
            raise
        return self._file

    def _after_slice(self, _status: int, remaining: int, total: int) -> None:
        """SQLite calls this between two slices, while the connection is free."""
        if not self._is_wanted:
            raise GivenUp
        self._may_go_on()
        copied = total - remaining
        if copied < self._copied:
            self._restarts += 1
            if self._restarts > MOST_RESTARTS:
                raise StoreBusy("another program writes to the database, so that a copy never ends")
        self._copied = copied
        self._slices += 1
        if self._slices % SYNC_SLICES == 0:
            os.fdatasync(self._file.fileno())
        sleep(PAUSE_S)
