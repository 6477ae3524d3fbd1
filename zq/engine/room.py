"""Why new jobs are refused: decided in one place, for those who send them and for those who ask."""

from zq.model.clock import Clock
from zq.model.errors import StorageFull, WalFull, ZqError
from zq.store.store import Store

SPACE_CHECK_S = 1.0


class Room:
    """Whether the disk has room for new jobs. What it refuses, acknowledgements still get."""

    def __init__(self, store: Store, clock: Clock, *, disk_reserve: int) -> None:
        self._store = store
        self._clock = clock
        self._disk_reserve = disk_reserve
        self._space_checked = float("-inf")
        self._space_left = True

    def refusal(self) -> ZqError | None:
        """What a new job is to be told, or None: there is room."""
        if not self._has_space():
            return StorageFull(
                f"less than {self._disk_reserve} bytes are free where the data lies: new jobs are"
                " refused, acknowledgements still pass. Free some space, or lower --disk-reserve"
            )
        if self._store.wal_is_over:
            return WalFull(
                "the write-ahead log is over --max-wal, for another program that reads the database"
                " keeps it from being emptied: new jobs are refused until it ends,"
                " acknowledgements still pass"
            )
        return None

    def _has_space(self) -> bool:
        now = self._clock.monotonic()
        if now - self._space_checked >= SPACE_CHECK_S:
            self._space_checked = now
            self._space_left = self._store.free_bytes() >= self._disk_reserve
        return self._space_left
