"""Windows of claims: how many jobs somebody may hold who claims again and again.

A job that was claimed keeps its lease when its taker goes away. A stream's jobs go with the stream,
so a stream knows what it holds by itself.
"""

from collections.abc import Iterable, Sequence, Set

from zq.engine.subscribers.waking import NewsReader
from zq.model.job import JobRecord


class ClaimWindow(NewsReader):
    """Counts the jobs of somebody who may hold `size` of them, until it ends.

    Its owner is woken when a job counts no more.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._held: set[int] = set()

    @property
    def room(self) -> int:
        """How many more jobs it may hold."""
        return self._size - len(self._held)

    @property
    def held(self) -> Set[int]:
        """The keys of the jobs that count."""
        return self._held

    async def wait_for_room(self) -> None:
        """Return once it may hold another job, or has ended."""
        while self.room <= 0 and not self.ended:
            await self.wait()

    def hold(self, keys: Iterable[int]) -> None:
        """Count claimed jobs."""
        self._held.update(keys)

    def drop(self, key: int) -> None:
        """Count a job no more: it is settled, or its lease has ended."""
        self._held.discard(key)
        self.nudge()


class ClaimWindows:
    """The windows of the jobs that are counted in one, by key."""

    def __init__(self) -> None:
        self._windows: dict[int, ClaimWindow] = {}

    def hold(self, window: ClaimWindow | None, jobs: Sequence[JobRecord]) -> int:
        """Count jobs that were just claimed in their window, if any. Return how many they are."""
        if window is not None:
            keys = [job.key for job in jobs]
            window.hold(keys)
            self._windows.update(dict.fromkeys(keys, window))
        return len(jobs)

    def leave(self, ended: Sequence[tuple[int, int]]) -> int:
        """Count jobs no more whose leases have ended, given as (holder, key). Return how many
        of them were claimed: their holder is 0.
        """
        if self._windows:
            for _, key in ended:
                window = self._windows.pop(key, None)
                if window is not None:
                    window.drop(key)
        return sum(holder == 0 for holder, _ in ended)
