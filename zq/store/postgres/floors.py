"""The places at which claims begin to look for ready jobs.

A claim reads jobs in their order from the first on. The rows of jobs that have gone stay in its
index until a vacuum removes them, which it cannot while any transaction may still read them. So a
claim begins at the place of the first job that the last one has found: no ready job lies before it,
unless one has come there since. What cannot be followed drops all places. So does the time: a row
that another program has locked was passed over.
"""

import time
from collections.abc import Iterable

Place = tuple[int, int]
"""A priority, and the key of a job."""

FIRST: Place = (-(2**31), 0)

KEEPS = frozenset(
    (
        *("claim_any", "claim_queue", "take", "take_on_terms"),
        *("read_held", "read_current", "read_stale", "read_briefs", "read_jobs"),
        *("complete", "complete_with_results", "extend", "forgive_stall"),
        *("delete_jobs", "delete_payloads", "delete_results", "delete_errors", "read_purgeable"),
        *("read_due", "read_waited", "append", "extend_log"),
        *("count", "deadlines", "note_clock", "raise_high_water", "tell"),
    )
)
"""The statements that make no job ready."""

MOST = 64
"""So many queues have a place of their own at most."""

LOOK_S, REST = 1.0, 50
"""All places are dropped after so many seconds, and after so many times the time that the first
claim then takes."""


class Floors:
    """The places of a server that has its database for itself."""

    def __init__(self) -> None:
        self._places: dict[str | None, Place] = {}
        """By queue, and under None for claims of all queues."""
        self._is_open = False
        """True if a transaction has begun and was not committed."""
        self._drops_at = 0.0
        self._began: float | None = None
        """When the claim under way began, if it is the first one after all places were dropped."""

    def begin(self) -> None:
        """Begin a transaction. If the one before was undone, so is what it has found."""
        if self._is_open:
            self.drop()
        self._is_open = True

    def committed(self) -> None:
        self._is_open = False

    def drop(self) -> None:
        """Let claims begin at the first job."""
        self._places.clear()

    def of(self, queue: str | None) -> Place:
        """Where a claim of a queue, or of all, begins."""
        now = time.monotonic()
        if now >= self._drops_at:
            self.drop()
            self._began = now
        return self._places.get(queue, FIRST)

    def found(self, queue: str | None, place: Place | None) -> None:
        """Note the place of the first job that a claim has found, if there was one."""
        if self._began is not None:
            now = time.monotonic()
            self._drops_at = now + max(LOOK_S, REST * (now - self._began))
            self._began = None
        if place is not None:
            if len(self._places) >= MOST and queue not in self._places:
                self.drop()
            self._places[queue] = place

    def came(self, places: Iterable[Place]) -> None:
        """Note that there are new jobs at these places."""
        if self._places:
            first = min(places, default=None)
            for queue, place in self._places.items():
                if first is not None and first < place:
                    self._places[queue] = first
