"""Reading the history of jobs, up to what the disk has."""

import asyncio
import sqlite3

import msgspec

from zq.engine.committed import Committed
from zq.model.clock import Clock
from zq.model.history import HistoryRecord
from zq.model.ids import IdCodec
from zq.store.history import LOG
from zq.store.log import read_log, unreadable_batch
from zq.store.store import Store
from zq.wire.history import HistoryDocument, history_records


class Readers:
    """How far the history may be read, and who waits for more of it.

    A power cut must not take back what a reader has been given, and give its numbers to other
    records: they are shown once a sync has covered them.
    """

    def __init__(self, logged: int) -> None:
        """`logged` is the last record; what is there at a start has been synced."""
        self.readable = logged
        self._logged = logged
        self.waiting: set[asyncio.Event] = set()
        self._closed = False

    def learn(self, committed: Committed) -> None:
        """See how many records a tick has added, and whether they are on the disk."""
        self._logged = max(self._logged, committed.result.logged)
        if committed.tick.durable:
            self.synced()

    def synced(self) -> None:
        """All that was committed is on the disk."""
        if self._logged > self.readable:
            self.readable = self._logged
            self._wake()

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._closed = True
        self._wake()

    async def wait(self, after: int, wait_ms: int, clock: Clock) -> None:
        """Until there is a record behind `after`, for so long at most."""
        event = asyncio.Event()
        timer = clock.call_later(wait_ms / 1000, event.set)
        self.waiting.add(event)
        try:
            if self.readable <= after and not self._closed:
                await event.wait()
        finally:
            self.waiting.discard(event)
            timer.cancel()

    def _wake(self) -> None:
        for event in self.waiting:
            event.set()


class History:
    """A part of the engine. `recording` tells whether attempts are recorded."""

    def __init__(
        self, store: Store, clock: Clock, ids: IdCodec, readers: Readers, *, recording: bool
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.readers = readers
        self._recording = recording

    async def page(
        self, after: int | None, until: int, limit: int, wait_ms: int
    ) -> HistoryDocument:
        """Up to `limit` records with ``after < seq <= until``; after None, from the oldest one on.

        Where there is none yet, it waits for some. Raises `RecordsGone` or `CursorAhead`.
        """
        seen = self.readers.readable
        scans = self._store.readers.scans
        found = await scans.read(self._read, after, until, seen, limit)
        if found.records or not wait_ms or (after is not None and after >= until):
            return found
        await self.readers.wait(seen, wait_ms, self._clock)
        return await scans.read(self._read, after, until, self.readers.readable, limit)

    def close(self) -> None:
        """Let nobody wait any longer."""
        self.readers.close()

    def _read(
        self,
        connection: sqlite3.Connection,
        after: int | None,
        until: int,
        readable: int,
        limit: int,
    ) -> HistoryDocument:
        """Read and put together; in a reader's thread, for a page takes a while."""
        page = read_log(connection, LOG, after, min(until, readable), limit)
        records: list[HistoryRecord] = []
        for batch in page.batches:
            try:
                records += history_records(*batch, self._store.epoch, self._ids)
            except msgspec.MsgspecError:
                raise unreadable_batch(connection, LOG, batch.first_seq) from None
        return HistoryDocument(self._store.epoch, self._recording, page.min_seq, readable, records)
