"""The verbs that maintain the stored data: backup, and giving free space back."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO

from zq.engine.engine import Engine
from zq.model.errors import BackupDisturbed, BackupRunning, DatabaseLocked, Internal, StorageFull
from zq.store.api import Store
from zq.store.errors import StoreBusy, StoreError, StoreFull

log = logging.getLogger(__name__)


class Maintenance:
    """Maintains one store. `disk_reserve` bytes always stay free."""

    def __init__(self, store: Store, engine: Engine, disk_reserve: int) -> None:
        self._store = store
        self._engine = engine
        self._disk_reserve = disk_reserve
        self._is_copying = False

    @asynccontextmanager
    async def backup(self) -> AsyncIterator[BinaryIO]:
        """A copy of everything that is stored at one moment, within the block.

        It includes all acknowledged changes from before the call. Raises `BackupRunning`,
        `BackupDisturbed`, `StorageFull` if it would not fit on the disk, or `Internal`.
        """
        if self._is_copying:
            raise BackupRunning
        self._is_copying = True
        try:
            with await self._copy() as copy:
                yield copy
        finally:
            self._is_copying = False

    async def compact(self) -> None:
        """Give all free space back to the file system.

        Raises `StorageFull`, `DatabaseLocked`, `NotOnThisStore` or `Internal`.
        """
        try:
            # Others may wait for the same one, so a caller that has gone must not cancel it.
            await asyncio.shield(self._engine.compact())
        except StoreFull:
            raise StorageFull(
                "no space is left on the disk, and compacting needs a little: free some space"
            ) from None
        except StoreBusy:
            raise DatabaseLocked from None
        except StoreError as error:
            raise Internal from error

    async def _copy(self) -> BinaryIO:
        self._refuse_too_large()
        try:
            return await self._store.backup(self._disk_reserve)
        except StoreFull:
            raise self._too_large() from None
        except StoreBusy as error:
            raise BackupDisturbed from error
        except (StoreError, OSError) as error:
            log.error(f"a backup has failed: {error}")
            raise Internal from error

    def _refuse_too_large(self) -> None:
        free = self._store.free_bytes()
        if free is not None and free - self._needed() < self._disk_reserve:
            raise self._too_large()

    def _needed(self) -> int:
        return self._store.database_bytes() + self._store.wal_bytes()

    def _too_large(self) -> StorageFull:
        return StorageFull(
            f"a backup takes {self._needed()} bytes where the data lies for as long as it is made;"
            f" {self._store.free_bytes()} are free, and --disk-reserve keeps {self._disk_reserve}"
            " of them. Free some space, or lower --disk-reserve"
        )
