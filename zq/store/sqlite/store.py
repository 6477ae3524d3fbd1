"""The store: it opens the file, recovers it, and owns its one writer and its readers."""

import asyncio
import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from zq.model.clock import Clock
from zq.model.commands import Tick, TickResult
from zq.model.effects import Misfit, Quarantined
from zq.model.log import Bounds
from zq.store.api import FoundAtStart, LongCommit, MakeTicks, OthersNews, Sliced, Store, Ticks
from zq.store.errors import FilesMoved, StoreBusy, StoreDamaged, StoreError, StoreFailed, StoreFull
from zq.store.reads import Reads
from zq.store.snapshot import ANY_TABLE
from zq.store.sqlite import damage, upkeep
from zq.store.sqlite.backup import Copies
from zq.store.sqlite.connection import (
    PAGE_BYTES,
    HopConnection,
    is_busy,
    is_full,
    open_reader,
    open_writer,
    store_error,
    store_errors,
    wait_for_nobody,
)
from zq.store.sqlite.files import (
    COPY_NAME,
    FILE_NAME,
    LOCK_NAME,
    WAL_NAME,
    create_private,
    make_private,
    refuse_unfinished,
)
from zq.store.sqlite.flush import Flush, FlushGate, OpenFiles, open_flush
from zq.store.sqlite.lock import DirectoryLock
from zq.store.sqlite.migrate import migrate, refuse_foreign_file
from zq.store.sqlite.preallocation import Preallocation
from zq.store.sqlite.quarantine import (
    MOST_NAMED,
    UnreadableRows,
    read_quarantine,
    set_aside_at_start,
)
from zq.store.sqlite.readers import ReaderPool, ReadLanes
from zq.store.sqlite.replace import finish_replacing
from zq.store.sqlite.snapshot import CORE, SqliteSnapshot, reads_of_rooms
from zq.store.sqlite.transaction import SqliteTransaction

log = logging.getLogger(__name__)

T = TypeVar("T")

SLICE_S = 0.004
"""How long a transaction may hold the event loop before other tasks get a turn."""

CHECKPOINT_BYTES = 4 * 2**20
"""The size of a WAL at which it is copied into the database. Measured: this is as fast as larger
ones, and has the best tail."""


LOOKS_S = 60.0
"""So long after it was in vain, an unreadable row is not looked for in all tables again."""

SLOT = 0
"""One file has one server: the lock of its directory ensures that."""


class SqliteStore(Store):
    """One open data directory. `open_store` makes it."""

    def __init__(
        self,
        directory: Path,
        lock: DirectoryLock,
        writer: HopConnection,
        flush: Flush,
        at_start: FoundAtStart,
        quarantined: Quarantined,
        ticks: Ticks,
        read_timeout: float,
        max_wal: int,
        page_bytes: int,
        blocks: Preallocation,
    ) -> None:
        self.directory = directory
        self.slot = SLOT
        self.slots = 1
        self.at_start = at_start
        self.steady = at_start.steady
        self.logged = at_start.logged
        self.quarantined = quarantined
        self.when_away: Callable[[StoreBusy], bool] = bool
        self.when_others: Callable[[OthersNews], object] = bool
        self.when_unreadable: Callable[[str, Sequence[object]], Awaitable[object]] = _nobody_helps
        """Called with a table and the keys of rows. Some of these rows cannot be read."""
        self.when_rested: Callable[[], object] = bool
        """As in `Store`."""
        self._lock = lock
        self._files = OpenFiles(directory)
        self._writer = writer
        self._flush = flush
        self._flush_gate = FlushGate()
        self.readers = ReaderPool(
            *(self._open_reader, read_timeout, self._repaired, self._flush_gate.wait),
            lambda: self.when_rested(),
        )
        lanes = ReadLanes(self.readers, self.steady)
        self.reads = Reads(lanes, partial(SqliteSnapshot, CORE), reads_of_rooms)
        self._ticks = ticks
        self.uncopied_bytes = 0
        """The bytes that the last checkpoint left in the WAL: the database may grow by as many."""
        self._rows = 0
        # The first one comes early. A commit of one row writes half a dozen pages, as one of fifty
        # does. A log that is overwritten is also synced faster than one that grows.
        self._page_bytes = page_bytes
        self._blocks = blocks
        self._rows_a_checkpoint = CHECKPOINT_BYTES // page_bytes // 8
        self._old_pages = 0
        self._looks_at = 0.0
        """Before this time, nobody looks through all tables for an unreadable row again."""
        self._copies = Copies(writer, directory / COPY_NAME, self.free_bytes)
        self.wants_checkpoint = False
        """True if the WAL has probably grown by `CHECKPOINT_BYTES` since the last checkpoint."""
        self._max_wal = max_wal
        self.wal_is_over = False
        """True if the WAL's file was still over its limit after the last checkpoint."""

    @property
    def flushed_by(self) -> str:
        """How commits reach the disk: `linux-aio`, `io-uring` or `thread`."""
        return self._flush.name

    def _tell(self, misfits: Sequence[Misfit]) -> None:
        """Log the rows that were set aside, and count them for `quarantined`."""
        damage.log_misfits(misfits)
        count, latest = self.quarantined
        named = [*reversed(misfits), *latest][:MOST_NAMED]
        self.quarantined = Quarantined(count + len(misfits), named)

    async def tick(self, tick: Tick) -> TickResult:
        """Run one tick. If it is durable, wait until it is on the disk.

        It runs in the event loop, slice by slice: handing it to a thread and back costs more than
        most ticks.
        """
        try:
            try:
                result = await self._run(self._ticks(tick))
            except (sqlite3.Error, StoreFull) as error:
                result = await self._with_room(tick, error)
            await self._land(result, durable=result.durable)
        except (OSError, sqlite3.Error, StoreError) as error:
            failure = store_error(error, self._writer.raw)
            if isinstance(failure, StoreDamaged):
                damage.mark_damaged(self.directory)
            if isinstance(failure, StoreFailed):
                self._flush_gate.fail()
            if failure is error:
                raise
            raise failure from error
        finally:
            self._flush_gate.let_go()
        if result.acknowledged:
            self.quarantined = Quarantined(0, ())
        if result.misfits:
            self._tell(result.misfits)
        self._rows += result.rows
        self.wants_checkpoint = self._rows >= self._rows_a_checkpoint
        return result

    async def _with_room(self, tick: Tick, error: sqlite3.Error | StoreFull) -> TickResult:
        """Run the transaction of a tick a second time, if the log had no room for it.

        A log that is copied begins anew, in blocks that it has.
        """
        if not isinstance(store_error(error, self._writer.raw), StoreFull):
            raise error
        await self._checkpoint(self._max_wal)
        return await self._run(self._ticks(tick))

    async def _land(self, result: TickResult, *, durable: bool) -> None:
        """Make sure that a commit lasts. Raises OSError or `FilesMoved` if it does not."""
        if not durable:
            self._files.glance()
            return
        self._flush_gate.hold_back()
        began = time.perf_counter()
        flushed = self._flush.begin()
        try:
            # Check before any answer: no restart would find the commit in a file without a name.
            self._files.glance()
        finally:
            await flushed
            result.flush_s = time.perf_counter() - began

    async def sync(self) -> None:
        with store_errors(self._writer.raw):
            self._files.glance()
            await self._flush.begin()

    async def _run(self, slices: Sliced[T]) -> T:
        """Run a transaction. Other tasks get a turn when it has held the event loop for long."""
        send, value = slices.send, None
        turn = time.perf_counter()
        try:
            while True:
                long = send(value)
                send, value = slices.send, None
                if long is not None:
                    if isinstance(long, LongCommit):
                        self._flush_gate.hold_back()
                    try:
                        value = await self._writer.hop(long)
                    except Exception as error:
                        send, value = slices.throw, error
                elif time.perf_counter() - turn > SLICE_S:
                    await asyncio.sleep(0)
                    turn = time.perf_counter()
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            slices.close()

    async def _open_reader(self) -> HopConnection:
        self._files.check()  # SQLite would make a missing file anew
        return await open_reader(self.directory / FILE_NAME)

    async def _repaired(self, found: UnreadableRows) -> bool:
        """Have the unreadable rows of a read set aside. Return whether there were any."""
        known = self.quarantined.rows
        if found.source == ANY_TABLE and time.monotonic() < self._looks_at:
            return False
        await self.when_unreadable(found.source, found.keys)
        was_found = self.quarantined.rows != known
        if found.source == ANY_TABLE and not was_found:
            self._looks_at = time.monotonic() + LOOKS_S
        return was_found

    async def check(self) -> None:
        self._files.check()

    async def checkpoint(self, *, shrink: bool = False) -> None:
        """Copy the WAL into the database, as far as no reader prevents it.

        With `shrink`, its file becomes empty. If the disk is full, or another program copies the
        WAL, it stays as it is: a later checkpoint goes on.
        """
        with store_errors(self._writer.raw):
            await self._checkpoint(0 if shrink else self._max_wal)

    async def _checkpoint(self, most_bytes: int) -> None:
        pages, copied = await self._writer.hop(self._copy_log, most_bytes)
        self.uncopied_bytes = (pages - copied) * self._page_bytes
        # After a full copy the log starts over. Pages that a reader kept were counted before.
        grown = pages - self._old_pages
        self._old_pages = 0 if pages == copied else pages
        if self._rows and grown > 0:
            # How many pages a row needs depends on queues and the size of ticks. So it is measured.
            planned = self._rows * CHECKPOINT_BYTES // (grown * self._page_bytes)
            self._rows_a_checkpoint = min(max(planned, 100), 100_000)
        self._rows = 0
        self.wants_checkpoint = False

    def _copy_log(self, most_bytes: int) -> tuple[int, int]:
        """Do all of a checkpoint in the writer's thread: the pages in the log, and those copied."""
        writer = self._writer.raw
        try:
            pages, copied = upkeep.checkpoint(writer)
        except StoreBusy:
            pages, copied = self.wal_bytes() // self._page_bytes, 0
        except sqlite3.OperationalError as error:
            if not is_full(error, writer):
                raise
            log.warning("the disk is full: the write-ahead log cannot be copied yet")
            pages, copied = self.wal_bytes() // self._page_bytes, 0
        if pages == copied and self.wal_bytes() > most_bytes:
            upkeep.shrink_wal(writer)
        self._blocks.renew()
        self.wal_is_over = self.wal_bytes() > self._max_wal
        if pages and pages == copied and not self.wal_is_over:
            self._restart_log(writer)
        return pages, copied

    def _restart_log(self, writer: sqlite3.Connection) -> None:
        try:
            upkeep.restart_log(writer)
        except sqlite3.OperationalError as error:
            # Then the next tick writes that page.
            if not (is_full(error, writer) or is_busy(error)):
                raise

    async def tidy(self, *, spare: bool = True) -> bool:
        """Give a slice of free space back to the file system. True if more can be given back."""
        with store_errors(self._writer.raw):
            return await self._writer.hop(upkeep.tidy, self._writer.raw, spare=spare)

    async def backup(self, least_free: int) -> BinaryIO:
        copy = await self._copies.make(least_free)
        # The copy may contain a commit that is not on the disk yet.
        await self._flush_gate.wait()
        return copy

    async def ping(self) -> None:
        """Return once a tick under way and the writer's thread are done, as a sign of life."""
        await self._flush_gate.wait()
        await self._writer.hop(int)

    def wal_bytes(self) -> int:
        """The size of the write-ahead log's file."""
        return _size(self.directory / WAL_NAME)

    def database_bytes(self) -> int:
        """The size of the database's file, without the log."""
        return _size(self.directory / FILE_NAME)

    def free_bytes(self) -> int:
        """The space on the file system of the data that an unprivileged writer may use, with the
        blocks that are allocated in advance."""
        return self._blocks.free_bytes()

    @property
    def leads(self) -> bool:
        return True

    def servers(self) -> int:
        return 1

    def bloat(self) -> None:
        """SQLite changes rows in their places."""

    async def close(self) -> None:
        """Checkpoint, close the connections, release the directory."""
        try:
            self._files.check()
            with store_errors(self._writer.raw):
                await self._writer.hop(upkeep.note_clock, self._writer.raw, self.steady)
            self._blocks.end()
            await self.checkpoint()
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Close without writing to the database, as after a failure of the disk."""
        self._flush.close()
        await self._copies.stop()
        try:
            self._files.check()
        except FilesMoved as moved:
            if moved.path.name != LOCK_NAME:
                await self._rescue()
        await self.readers.close()
        with contextlib.suppress(sqlite3.Error):
            await self._writer.close()
        self._blocks.close()
        self._lock.release()

    async def _rescue(self) -> None:
        """Copy a database that has lost its name to a new file, while it can still be read."""
        copy = self.directory / f"{FILE_NAME}.rescued-{time.time_ns() // 1_000_000}"
        try:
            create_private(copy).close()
            await self._writer.execute("VACUUM INTO ?", [os.fspath(copy)])
        except (sqlite3.Error, OSError) as error:
            log.error(f"what was in it cannot be saved: {error}")
        else:
            log.error(f"what was in it is saved in {copy}: to go on with it, name it {FILE_NAME}")


async def open_store(
    directory: Path,
    make_ticks: MakeTicks,
    *,
    cache_bytes: int,
    read_timeout: float,
    max_wal: int,
    page_bytes: int = PAGE_BYTES,
    disk_reserve: int = 0,
    history: Bounds | None = None,
    clock: Clock | None = None,
    off_counts: bool = True,
) -> SqliteStore:
    """Lock, open, migrate and recover a data directory. It is made if it is missing.

    Its steady time goes on by this `clock`, or by the machine's; over a reboot by as much as that
    took, if the time in which the machine was off counts (`off_counts`).
    A new database has pages of `page_bytes`.
    `read_timeout` is in seconds, `max_wal` in bytes; `history` limits how much of it is retained.
    Of `disk_reserve` bytes three quarters are allocated in advance if space is scarce: see
    `Preallocation`.
    Raises `DirectoryInUse`, `DatabaseTooNew`, `ForeignDatabase`, `RestoreUnfinished`, `StoreError`
    if the file is damaged or not writable, or `OSError` if the directory is not writable.
    """
    lock = DirectoryLock(directory)
    writer: HopConnection | None = None
    flush: Flush | None = None
    blocks: Preallocation | None = None
    # It ends with the start. A thread of the loop's own would stay for good.
    thread = ThreadPoolExecutor(1, "zq-start")
    path = directory / FILE_NAME
    wal = directory / WAL_NAME

    def prepare() -> None:
        damage.refuse_damaged_log(wal)
        # Check this before anything is changed.
        refuse_unfinished(directory)
        finish_replacing(directory)
        refuse_foreign_file(path)
        make_private(directory)

    def take_up(
        connection: sqlite3.Connection,
    ) -> tuple[list[Misfit], FoundAtStart, Ticks, Quarantined, int]:
        # Nothing may be written before this check: a write would destroy what it reports.
        pages, _ = upkeep.checkpoint(connection)
        damage.keep_damaged_log(wal, pages, partial(upkeep.has_rebooted, connection, clock))
        migrate(connection)
        small = damage.is_small(connection)
        now = time.time_ns() // 1_000_000
        damage.note_kept(connection, directory, now)
        transactions = partial(SqliteTransaction, connection)

        def recover() -> tuple[list[Misfit], FoundAtStart, Ticks]:
            misfits = set_aside_at_start(connection, now, jobs=small)
            damage.refuse_damage(connection, directory)
            found = upkeep.recover(connection, history, clock, off_counts=off_counts)
            return misfits, found, make_ticks(transactions, found.last_key)

        recovered = damage.mended(transactions(now).mend_stopped, recover)
        return *recovered, read_quarantine(connection), upkeep.page_bytes(connection)

    def settle(connection: sqlite3.Connection, blocks: Preallocation) -> None:
        blocks.renew()
        wait_for_nobody(connection)
        lock.sync_names()

    try:
        await asyncio.get_running_loop().run_in_executor(thread, prepare)
        writer = await open_writer(path, cache_bytes, page_bytes)
        taken = await writer.hop(take_up, writer.raw)
        misfits, at_start, ticks, quarantined, page_bytes = taken
        flush = await open_flush(wal)
        blocks = Preallocation(directory, disk_reserve)
        await writer.hop(settle, writer.raw, blocks)
    except BaseException as error:
        if flush is not None:
            flush.close()
        if writer is not None:
            await writer.close()
        if blocks is not None:
            blocks.close()
        lock.release()
        if isinstance(error, UnicodeDecodeError):  # from a message of SQLite's that quotes the file
            raise damage.damaged("it is damaged: text in it is no UTF-8") from error
        if isinstance(error, sqlite3.Error):
            raise store_error(error) from error
        raise
    finally:
        thread.shutdown(wait=False)
    damage.log_misfits(misfits)
    return SqliteStore(
        *(directory, lock, writer, flush, at_start, quarantined, ticks),
        *(read_timeout, max_wal, page_bytes, blocks),
    )


async def _nobody_helps(_source: str, _keys: Sequence[object]) -> None:
    """Do nothing: no loop runs that could set rows aside."""


def _size(path: Path) -> int:
    try:
        # Never open the file: closing a database's file would drop SQLite's locks on it.
        return path.stat().st_size
    except FileNotFoundError:
        return 0
