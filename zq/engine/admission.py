"""The check whether there is room for new jobs."""

from collections.abc import Callable, Sequence
from typing import Protocol

from zq.engine.inbox import Inbox, result_of
from zq.model.clock import Clock
from zq.model.errors import BulkTooLarge, StorageFull, WalFull, ZqError
from zq.store.api import SCARCE, Store

SPACE_CHECK_S = 1.0
"""While jobs come, the disk is checked at least this often, since others fill it too."""

ROW_BYTES = 512
"""The approximate size of a job besides its payload, in the table and its indexes."""

ENOUGH = 1 << 62
"""The free bytes of a store that does not know its disk."""

COPIES = 2
"""Each byte is written to the log and, by a checkpoint, to the database."""


class PayloadCheck(Protocol):
    """A check that may refuse new jobs before they are stored."""

    @property
    def in_use(self) -> object:
        """True, or not empty, while some payloads have to be checked."""

    async def require(self, payloads: Sequence[tuple[str, str]]) -> None:
        """Raise an error unless each payload, given with its queue, may be stored."""


class Admission:
    """Decides whether the disk has room for new jobs. Acknowledgements are always accepted.

    Between two checks of the disk, admitted bytes are counted, so that a burst cannot fill the disk
    unnoticed. New jobs that come together are stored in one transaction, for which all others wait:
    so they are bounded by `max_bytes`.
    """

    def __init__(
        self, store: Store, clock: Clock, inbox: Inbox, disk_reserve: int, max_bytes: int
    ) -> None:
        self.checks: list[PayloadCheck] = []
        """The checks of new payloads."""
        self._max_bytes = max_bytes
        self._store = store
        self._clock = clock
        self._inbox = inbox
        self._disk_reserve = disk_reserve
        self._looked = float("-inf")
        self._left = 0
        self.when_scarce: Callable[[], object] = bool
        """Called when a look at the disk finds that space has become scarce, and, at most once in
        `SPACE_CHECK_S`, when it finds no room for new jobs."""
        self._is_scarce = False
        self._full = float("-inf")

    def admit(self, jobs: int, payload_bytes: int) -> None:
        """Count jobs that will be stored together.

        Raises `BulkTooLarge`, and `StorageFull` or `WalFull` if there is no room.
        """
        if payload_bytes > self._max_bytes and jobs > 1:
            raise BulkTooLarge(payload_bytes, self._max_bytes)
        cost = _cost(jobs, payload_bytes)
        looked_lately = self._clock.monotonic() - self._looked < SPACE_CHECK_S
        if cost > self._left or not looked_lately or self._store.wal_is_over:
            # A frame with its own error would keep the error, and the request's body, in memory.
            result_of(self.refusal(cost))
        self._left -= cost

    def refusal(self, cost: int = 0) -> ZqError | None:
        """The error for new jobs with this many bytes; None if there is room."""
        if not self._has_space(cost):
            if not self._disk_reserve:
                return StorageFull(
                    "there is no room for them where the data lies: new jobs are refused. With"
                    " --disk-reserve 0 none is kept for deliveries and acknowledgements: if they"
                    " stop too, free some space"
                )
            return StorageFull(
                f"less than {self._disk_reserve} bytes would be free where the data lies: new jobs"
                " are refused, acknowledgements still pass. Free some space, or lower"
                " --disk-reserve"
            )
        if self._store.wal_is_over:
            return WalFull(
                "the write-ahead log is over --max-wal, for another program that reads the database"
                " keeps it from being emptied: new jobs are refused until it ends,"
                " acknowledgements still pass"
            )
        return None

    def _has_space(self, cost: int) -> bool:
        now = self._clock.monotonic()
        if cost > self._left or now - self._looked >= SPACE_CHECK_S:
            self._looked = now
            # Admitted jobs will still be written, even if no more are admitted.
            owed = _cost(self._inbox.waiting_jobs, self._inbox.waiting_bytes)
            owed += self._store.uncopied_bytes
            free = self._store.free_bytes()
            self._left = ENOUGH if free is None else free - self._disk_reserve - owed
            was_scarce = self._is_scarce
            self._is_scarce = free is not None and free < SCARCE * self._disk_reserve
            is_full = self._left < cost and now - self._full >= SPACE_CHECK_S
            if is_full:
                self._full = now
            if is_full or (self._is_scarce and not was_scarce):
                self.when_scarce()
        return self._left >= cost


def _cost(jobs: int, payload_bytes: int) -> int:
    return COPIES * (payload_bytes + jobs * ROW_BYTES)
