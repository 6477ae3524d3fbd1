"""Remembers which queues ticks have changed since somebody looked last."""

from zq.engine.after_commit import Committed
from zq.model.commands import Clear

MOST = 10_000
"""With more changed queues than this, all count as changed."""


class QueueChanges:
    """The changed queues. Nothing is remembered, and nothing costs anything, until the first look.

    A queue has changed if its numbers of jobs are others, or if other jobs of it may be claimed.
    """

    def __init__(self) -> None:
        self.listens = False
        self._names: set[str] = set()

    def learn(self, committed: Committed) -> None:
        """Note the queues that a tick has changed."""
        result = committed.result
        self._names |= result.counted
        self._names |= result.woken
        cleared = Clear in map(type, committed.tick.commands)
        if cleared or result.misfits or len(self._names) > MOST:
            self.forget()

    def take(self) -> set[str] | None:
        """The queues that have changed since the last call; None if all of them may have."""
        names = self._names if self.listens else None
        self.listens, self._names = True, set()
        return names

    def forget(self) -> None:
        """Remember nothing until the next call of `take`, for which all queues have changed."""
        self.listens, self._names = False, set()
