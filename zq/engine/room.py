"""Why new jobs are refused: decided in one place, for those who send them and for those who ask."""

from zq.engine.inbox import Inbox
from zq.model.clock import Clock
from zq.model.errors import StorageFull, WalFull, ZqError
from zq.store.store import Store

SPACE_CHECK_S = 1.0
"""Longest time between two looks at the disk while jobs come: others fill it too."""

ROW_BYTES = 512
"""What a job takes besides its payload, in the table and its indexes, roughly."""

COPIES = 2
"""Each byte is written to the log and, by a checkpoint, to the database."""


class Room:
    """Whether the disk has room for new jobs. What it refuses, acknowledgements still get.

    Between two looks at the disk what is admitted is counted, so that a burst cannot fill it
    unseen.
    """

    def __init__(self, store: Store, clock: Clock, inbox: Inbox, *, disk_reserve: int) -> None:
        self._store = store
        self._clock = clock
        self._inbox = inbox
        self._disk_reserve = disk_reserve
        self._looked = float("-inf")
        self._left = 0

    def admit(self, jobs: int, payload_bytes: int) -> None:
        """Count jobs that are to be stored. Raises `StorageFull` or `WalFull`: there is no room."""
        cost = _cost(jobs, payload_bytes)
        self._check(cost)
        self._left -= cost

    def refusal(self) -> ZqError | None:
        """What a new job is to be told, or None: there is room."""
        try:
            self._check(0)
        except ZqError as error:
            return error
        return None

    def _check(self, cost: int) -> None:
        if not self._has_space(cost):
            raise StorageFull(
                f"less than {self._disk_reserve} bytes would be free where the data lies: new jobs"
                " are refused, acknowledgements still pass. Free some space, or lower"
                " --disk-reserve"
            )
        if self._store.wal_is_over:
            raise WalFull(
                "the write-ahead log is over --max-wal, for another program that reads the database"
                " keeps it from being emptied: new jobs are refused until it ends,"
                " acknowledgements still pass"
            )

    def _has_space(self, cost: int) -> bool:
        now = self._clock.monotonic()
        if cost > self._left or now - self._looked >= SPACE_CHECK_S:
            self._looked = now
            self._left = self._store.free_bytes() - self._disk_reserve - self._owed()
        return self._left >= cost

    def _owed(self) -> int:
        """Bytes that will be written for what was admitted, though nothing more is."""
        waiting = _cost(self._inbox.waiting_jobs, self._inbox.waiting_bytes)
        return waiting + self._store.uncopied_bytes


def _cost(jobs: int, payload_bytes: int) -> int:
    return COPIES * (payload_bytes + jobs * ROW_BYTES)
