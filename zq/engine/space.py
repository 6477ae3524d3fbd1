"""Room on the disk for new jobs, known without asking the file system for each of them."""

from collections.abc import Callable

from zq.model.clock import Clock
from zq.model.errors import StorageFull

LOOK_S = 1.0
"""Longest time between two looks at the disk while jobs come: others fill it too."""

ROW_BYTES = 512
"""What a job takes besides its payload, in the table and its indexes, roughly."""

COPIES = 2
"""Each byte is written to the log and, by a checkpoint, to the database."""


class Space:
    """Refuses new jobs that would eat into the reserve.

    `free` tells the bytes left on the disk, `owed` those of what was admitted and is not written
    yet. Between two looks what is admitted is counted, so that a burst cannot fill the disk unseen.
    """

    def __init__(
        self, clock: Clock, reserve: int, free: Callable[[], int], owed: Callable[[], int]
    ) -> None:
        self._clock = clock
        self._reserve = reserve
        self._free = free
        self._owed = owed
        self._room = 0
        self._looked = float("-inf")

    def admit(self, jobs: int, payload_bytes: int) -> None:
        """Count jobs that are to be stored. Raises `StorageFull` where there is no room."""
        cost = cost_of(jobs, payload_bytes)
        now = self._clock.monotonic()
        if cost > self._room or now - self._looked >= LOOK_S:
            self._room = self._free() - self._reserve - self._owed()
            self._looked = now
        if cost > self._room:
            raise StorageFull(
                f"the data's disk would have less than {self._reserve} bytes free: new jobs are"
                " refused, acknowledgements still pass. Free some space, or lower --disk-reserve"
            )
        self._room -= cost


def cost_of(jobs: int, payload_bytes: int) -> int:
    """Bytes that storing jobs takes from the disk, roughly."""
    return COPIES * (payload_bytes + jobs * ROW_BYTES)
