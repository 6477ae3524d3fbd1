"""When queues were left by the last of their streams."""

from collections.abc import Sequence
from itertools import takewhile

MOST = 20_000
"""The most queues that are remembered; beyond that, the one that was left first is forgotten."""


class Departures:
    """Remembers for each queue when a stream that took from it was closed last, in milliseconds."""

    def __init__(self) -> None:
        self._by_queue: dict[str, int] = {}
        self._everywhere = 0

    def note(self, queues: Sequence[str] | None, at: int) -> None:
        """Note that a stream of some queues is closed. None means a stream of all queues."""
        if queues is None:
            self._everywhere = at
            return
        for queue in queues:
            self._by_queue.pop(queue, None)
            self._by_queue[queue] = at
            if len(self._by_queue) > MOST:
                del self._by_queue[next(iter(self._by_queue))]

    def since(self, at: int) -> set[str] | None:
        """The queues of the streams that were closed at a time or later; None means all queues."""
        if self._everywhere >= at:
            return None
        latest = takewhile(lambda queue: self._by_queue[queue] >= at, reversed(self._by_queue))
        return set(latest)

    def of(self, queue: str) -> int:
        """When the last stream that took from a queue was closed; 0 if none was."""
        return max(self._by_queue.get(queue, 0), self._everywhere)
