"""Upkeep of the store: the write-ahead log is copied, free space given back, files checked.

As far as possible, this happens while nobody waits.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from zq.engine.foreign_lock import ForeignLock
from zq.model.clock import Clock
from zq.model.errors import NotOnThisStore
from zq.store.api import Store
from zq.store.errors import StoreBusy, StoreFull

log = logging.getLogger(__name__)

IDLE_S = 1.0
"""After this much idle time the log is copied, if nobody says otherwise."""

CHECK_S = 0.5
"""The store of an idle server is checked this often: its files may be removed or replaced, and its
connection may be lost."""

WAL_RETRY_S = 1.0
"""The time between two checks whether a reader still keeps the WAL over its limit."""

LOCK_RETRY_S = 1.0
"""The time between two looks at another program's lock."""


SLICES_A_CHECKPOINT = 4
"""The slices of a compaction between two copies of the log. Each writes about 1 MiB to it."""

REST = 3.0
"""While ticks run, the rest after a slice of a compaction is this many times as long as the
slice."""


@dataclass
class _Compaction:
    """One compaction, for all who asked for it. `next` is a monotonic time in seconds."""

    done: asyncio.Future[None]
    slices: int = 0
    next: float = float("-inf")


class Upkeep:
    """Maintains the store between ticks."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lock: ForeignLock,
        wake: Callable[[], object] = lambda: None,
        rest_s: float = IDLE_S,
        sync_s: float = IDLE_S,
    ) -> None:
        """`wake` makes an idle loop check whether there is something to do.

        After `rest_s` without ticks the log is copied, and free space is given back, a slice at a
        time. Ticks that were answered before their flush are flushed after `sync_s` without ticks.
        """
        self._rest_s = rest_s
        self._sync_s = sync_s
        self._unsynced = False
        self._wake = wake
        self._compaction: _Compaction | None = None
        self._store = store
        self._clock = clock
        self.when_synced: list[Callable[[], object]] = []
        """Called when a checkpoint has brought all commits to the disk."""
        self._lock = lock
        self._untidy = True
        self._hurries = False
        """True if the log is to be copied without waiting for an idle moment."""
        self._ticked = self._checkpointed = self._checked = clock.monotonic()

    def ticked(self, now: float, *, durable: bool = True) -> bool:
        """Note that a tick has ended, on the disk if it is `durable`.

        Return whether upkeep comes before the server is idle.
        """
        self._untidy = True
        self._unsynced = not durable
        self._ticked = now
        compacts = self._compaction is not None and now >= self._compaction.next
        return compacts or self._wants_checkpoint(now)

    def copy_soon(self) -> None:
        """Have the log copied although the server is busy: the disk may soon be full.

        Once it is, a database that would have to grow cannot take what is in the log, and a log
        that cannot be copied ends up full. Then acknowledgements would fail as well. After a copy
        the store allocates blocks in advance, if it can.
        """
        self._hurries = True
        self._wake()

    async def between_ticks(self) -> None:
        """Do the upkeep that cannot wait until the server is idle."""
        now = self._clock.monotonic()
        if self._compaction is not None and now >= self._compaction.next:
            await self._compact(self._compaction)
        if self._wants_checkpoint(now):
            await self.checkpoint()

    def compact(self) -> asyncio.Future[None]:
        """Give all free space back, slice by slice. The future is done when that has happened.

        It raises `StoreError` if the disk fails or is full, or another program keeps its lock,
        and `NotOnThisStore`.
        """
        if self._compaction is None:
            self._compaction = _Compaction(asyncio.get_running_loop().create_future())
            self._wake()
        return self._compaction.done

    def fail(self, error: BaseException) -> None:
        """Tell those who wait for a compaction that it has failed."""
        if self._compaction is not None:
            self._end_compaction(error)

    async def _compact(self, compaction: _Compaction) -> None:
        began = self._clock.monotonic()
        try:
            if not compaction.slices:
                # The changes in the log may fill pages that would otherwise be moved.
                await self.checkpoint()
            more = await self._store.tidy(spare=False)
            self._lock.gone()
            compaction.slices += 1
            if not more:
                await self.checkpoint(shrink=True)
                self._end_compaction(None)
            elif compaction.slices % SLICES_A_CHECKPOINT == 0:
                await self.checkpoint()
        except StoreBusy as error:
            if self._lock.met(error):
                self._end_compaction(error)
            compaction.next = began + LOCK_RETRY_S
            return
        except (StoreFull, NotOnThisStore) as error:
            self._end_compaction(error)
        ended = self._clock.monotonic()
        compaction.next = ended + (ended - began) * REST

    def _end_compaction(self, error: BaseException | None) -> None:
        compaction, self._compaction = self._compaction, None
        if compaction is None or compaction.done.cancelled():
            return
        if error is None:
            compaction.done.set_result(None)
        else:
            compaction.done.set_exception(error)
            compaction.done.exception()  # Perhaps nobody waits any more

    async def checkpoint(self, *, shrink: bool = False) -> None:
        """Copy the log into the database. Log a message if its size crosses the limit."""
        self._hurries = False
        was_over = self._store.wal_is_over
        await self._store.checkpoint(shrink=shrink)
        if not self._store.uncopied_bytes:
            self._note_synced()
        self._checkpointed = self._clock.monotonic()
        if self._store.wal_is_over is not was_over:
            fields = {"wal_bytes": self._store.wal_bytes()}
            if was_over:
                log.info("the write-ahead log is small again", extra={"fields": fields})
            else:
                log.warning(
                    "the write-ahead log is over --max-wal: new jobs are refused",
                    extra={"fields": fields},
                )

    async def tidy(self) -> float:
        """Use an idle moment: copy the log, or give free space back.

        Return the seconds until there is more to do; 0 if there is more now.
        """
        now = self._clock.monotonic()
        if now - self._checked >= CHECK_S:
            self._checked = now
            try:
                await self._store.check()
            except StoreBusy as error:
                self._lock.met(error)
        if self._compaction is not None:
            await self._compact(self._compaction)
            return LOCK_RETRY_S if self._lock.since is not None else 0.0
        wal_retry = self._wal_retry(now) if self._store.wal_is_over else math.inf
        if wal_retry <= 0 or self._hurries:
            await self.checkpoint()
            return 0.0
        if not (self._untidy or self._lock.since is not None):
            return wal_retry
        usual = self._rest_s if self._lock.since is None else LOCK_RETRY_S
        if (rest := self._ticked + usual - now) > 0:
            if not self._unsynced:
                return min(rest, wal_retry)
            if (waits := self._ticked + self._sync_s - now) > 0:
                return min(rest, waits, wal_retry)
            await self._store.sync()
            self._note_synced()
            return 0.0
        await self.checkpoint()
        try:
            self._untidy = await self._store.tidy()
        except StoreFull:
            self._ticked = self._clock.monotonic()  # try again after a rest
        except StoreBusy as error:
            self._lock.met(error)
            self._ticked = self._clock.monotonic()
        else:
            self._lock.gone()
        return 0.0

    def _note_synced(self) -> None:
        self._unsynced = False
        for learn in self.when_synced:
            learn()

    def _wants_checkpoint(self, now: float) -> bool:
        if self._store.wants_checkpoint or self._hurries:
            return True
        return self._store.wal_is_over and self._wal_retry(now) <= 0

    def _wal_retry(self, now: float) -> float:
        """The seconds until a log over its limit is checked again."""
        return self._checkpointed + WAL_RETRY_S - now
