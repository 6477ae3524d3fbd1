"""The store: opens the file, recovers it, and lends its one writer and its readers."""

import asyncio
import contextlib
import logging
import os
import sqlite3
from pathlib import Path
from random import Random

from zq.model.commands import Tick, TickResult
from zq.model.settling import Policy
from zq.store import upkeep
from zq.store.connection import (
    HopConnection,
    is_full,
    open_reader,
    open_writer,
)
from zq.store.damage import refuse_damage, refuse_damaged_log, report_torn_tail
from zq.store.history import HistoryOptions
from zq.store.lock import DirectoryLock
from zq.store.migrate import migrate
from zq.store.readers import READERS, Readers
from zq.store.tick import TickRunner

log = logging.getLogger(__name__)

FILE_NAME = "zq.db"
WAL_NAME = f"{FILE_NAME}-wal"

PAGE_BYTES = 4096
"""SQLite's default."""

CHECKPOINT_PAGES = 1024
"""Pages of WAL after which it is copied into the database: 4 MiB. Measured: as fast as larger ones,
and the best tail."""


class Store:
    """One open data directory. Make it with `open_store`."""

    def __init__(
        self,
        directory: Path,
        lock: DirectoryLock,
        writer: HopConnection,
        readers: Readers,
        recovered: upkeep.Recovered,
        runner: TickRunner,
        max_wal: int,
    ) -> None:
        self.directory = directory
        self.id_suffix = recovered.id_suffix
        self.epoch = recovered.epoch
        self.last_key = recovered.last_key
        self.returned = recovered.returned
        self.claimed = recovered.claimed
        """Jobs that claimants held when it was opened, and hold still."""
        self.deadlines = recovered.deadlines
        self.logged = recovered.logged
        """The last record of the history when the store was opened."""
        self._lock = lock
        self._writer = writer
        self.readers = readers
        self.read = readers.looks.read
        """Where a read does not grow with the jobs. The other lanes are in `readers`."""
        self._runner = runner
        self.uncopied_bytes = 0
        """What the last checkpoint had to leave in the WAL: the database may grow by as much."""
        self._rows = 0
        # The first one comes early: a commit takes half a dozen pages for a row as for fifty, and a
        # log that has come round once is overwritten, which is synced faster than one that grows.
        self._rows_a_checkpoint = CHECKPOINT_PAGES // 8
        self._old_pages = 0
        self._max_wal = max_wal
        self.wal_is_over = False
        """Whether the WAL's file was over its limit still after the last checkpoint."""

    async def tick(self, tick: Tick) -> TickResult:
        """Run one tick in the writer's thread: one hop there and back."""
        result = await self._writer.hop(self._runner.run, tick)
        self._rows += result.rows
        return result

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the WAL has probably grown by `CHECKPOINT_PAGES` since the last checkpoint."""
        return self._rows >= self._rows_a_checkpoint

    async def checkpoint(self) -> None:
        """Copy what the WAL holds into the database, as far as no reader is in the way.

        Where the disk is full the WAL stays as it is: a later checkpoint finds more space.
        """
        try:
            pages, copied = await self._writer.hop(upkeep.checkpoint, self._writer.raw)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            log.warning("the disk is full: the write-ahead log cannot be copied yet")
            pages, copied = self.wal_bytes() // PAGE_BYTES, 0
        if pages == copied and self.wal_bytes() > self._max_wal:
            await self._writer.hop(upkeep.shrink_wal, self._writer.raw)
        self.wal_is_over = self.wal_bytes() > self._max_wal
        self.uncopied_bytes = (pages - copied) * PAGE_BYTES
        # A log that is copied starts anew; what a reader pins stays in it, and was counted before.
        grown = pages - self._old_pages
        self._old_pages = 0 if pages == copied else pages
        if self._rows and grown > 0:
            # How many pages a row costs depends on queues and the size of ticks: learn it.
            planned = self._rows * CHECKPOINT_PAGES // grown
            self._rows_a_checkpoint = min(max(planned, 100), 100_000)
        self._rows = 0

    async def tidy(self) -> bool:
        """Give a slice of free space back to the file system. True where there is more to give."""
        return await self._writer.hop(upkeep.tidy, self._writer.raw)

    async def ping(self) -> None:
        """A finished round trip through the writer's thread: the watchdog's sign of life."""
        await self._writer.hop(self._writer.raw.total_changes.__int__)

    def wal_bytes(self) -> int:
        """Size of the write-ahead log's file."""
        return _size(self.directory / WAL_NAME)

    def database_bytes(self) -> int:
        """Size of the database's file, without the log."""
        return _size(self.directory / FILE_NAME)

    def free_bytes(self) -> int:
        """Space left on the file system of the data, as an unprivileged writer may use it."""
        disk = os.statvfs(self.directory)
        return disk.f_bavail * disk.f_frsize

    async def close(self) -> None:
        """Checkpoint, close the connections, release the directory.

        Raises `sqlite3.Error` where the disk fails; all is closed then, and what was committed is
        in the WAL.
        """
        try:
            await self.checkpoint()
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Close without writing anything more: what is left to do after the disk has failed."""
        for connection in (*self.readers.connections, self._writer):
            with contextlib.suppress(sqlite3.Error):
                await connection.close()
        self._lock.release()


async def open_store(
    directory: Path,
    *,
    policy: Policy,
    random: Random,
    cache_bytes: int,
    read_timeout: float,
    max_wal: int,
    history: HistoryOptions | None = None,
) -> Store:
    """Lock, open, migrate and recover a data directory, which is created where it is missing.

    `read_timeout` in seconds, `max_wal` in bytes; without `history` none is kept. Raises
    `DirectoryInUse`, `DatabaseTooNew`, `sqlite3.Error` where the file is damaged or not writable,
    or `OSError` where the directory is not.
    """
    lock = DirectoryLock(directory)
    opened: list[HopConnection] = []
    try:
        path = directory / FILE_NAME
        wal = directory / WAL_NAME
        await asyncio.to_thread(refuse_damaged_log, wal)
        writer = await open_writer(path, cache_bytes)
        opened.append(writer)
        # Nothing may be written before this: it would go over what is to be reported.
        pages, _ = await writer.hop(upkeep.checkpoint, writer.raw)
        await asyncio.to_thread(report_torn_tail, wal, pages)
        await writer.hop(migrate, writer.raw)
        await writer.hop(refuse_damage, writer.raw)
        bounds = None if history is None else history.bounds
        recovered = await writer.hop(upkeep.recover, writer.raw, bounds)
        device = None if history is None else history.device
        runner = await writer.hop(
            TickRunner, writer.raw, policy, random, recovered.last_key, device
        )
        opened += [await open_reader(path) for _ in range(READERS)]
        await asyncio.to_thread(lock.sync_names)
    except BaseException as error:
        for connection in opened:
            await connection.close()
        lock.release()
        if isinstance(error, UnicodeDecodeError):  # of a message of SQLite's that quotes the file
            raise sqlite3.DatabaseError("it is damaged: text in it is no UTF-8") from error
        raise
    readers = Readers(opened[1:], read_timeout)
    return Store(directory, lock, writer, readers, recovered, runner, max_wal)


def _size(path: Path) -> int:
    try:
        # Never by opening it: closing a database's file would drop SQLite's locks on it.
        return path.stat().st_size
    except FileNotFoundError:
        return 0
