"""The waiters for jobs to be finished.

They are a registry in memory. Each tick tells them after its commit, and nothing polls. A waiter is
registered before its job is stored or read, and stays until its owner removes it. So it misses no
ending, not even that of a job that is deleted on success. Each has its news at once, and is woken
in its turn, since thousands may wait for one job.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from zq.engine.after_commit import Committed
from zq.engine.subscribers.waking import NewsReader, WakeLine
from zq.model.clock import Clock
from zq.model.commands import (
    Clear,
    DeleteJob,
    DeleteSlice,
    Enqueue,
    EnqueueResult,
    Settled,
    Succeed,
)
from zq.model.events import EventType
from zq.model.lifecycle import Status
from zq.model.settling import Completion, Ending

_NOTHING_SAID = Completion()
_ENDINGS = {
    EventType.COMPLETED: Ending(Status.COMPLETED),
    EventType.CANCELLED: Ending(Status.CANCELLED),
    EventType.EXPIRED: Ending(Status.EXPIRED),
}


class Waiter(NewsReader):
    """A wait for one job. `outcome` is set once the job is finished."""

    def __init__(self) -> None:
        super().__init__()
        self.key: int | None = None
        self.outcome: Ending | None = None


class Waiters:
    """All waiters, by the keys of their jobs."""

    def __init__(self, clock: Clock) -> None:
        self._line = WakeLine(clock)
        self._by_key: dict[int, set[Waiter]] = {}
        self.listens: Collection[int] = self._by_key
        """The jobs that somebody waits for."""
        self._open: set[Waiter] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_empty(self) -> bool:
        return not self._open and not self._by_key

    @contextmanager
    def waiter(self) -> Iterator[Waiter]:
        """A waiter within the context. `watch` chooses its job."""
        waiter = Waiter()
        self._open.add(waiter)
        if self._closed:
            waiter.end()
        try:
            yield waiter
        finally:
            self._open.discard(waiter)
            self._forget(waiter)

    def watch(self, waiter: Waiter, key: int) -> None:
        """Let a waiter wait for the job with this key only."""
        self._forget(waiter)
        waiter.key = key
        self._by_key.setdefault(key, set()).add(waiter)

    def close(self) -> None:
        self._closed = True
        for waiter in self._open:
            waiter.end()

    def look_again(self) -> None:
        """Have all waiters look at their jobs, since other servers may have finished these."""
        self._nudge(list(self._by_key))

    def learn(self, committed: Committed) -> None:
        """Tell the waiters whose jobs a tick has finished."""
        commands, result = committed.tick.commands, committed.result
        for command, reply in zip(commands, result.replies, strict=True):
            match command, reply:
                case Succeed(), Settled():
                    self._succeeded(command, reply)
                case (DeleteJob(key=key), None):
                    self._nudge([key])
                case (DeleteSlice(keys=keys), _):
                    self._nudge(keys)
                case (Clear(), _):
                    self._nudge(list(self._by_key))
                case _:
                    pass
        for key, error in result.fatal.items():
            self._tell(key, Ending(Status.DEAD, error=error))
        for key, (reason, stalls) in result.buried.items():
            self._tell(key, Ending(Status.DEAD, reason=reason, stalls=stalls))
        # A job that is complete at another server has no result here, and no command of its own.
        for type, jobs in result.news:
            if type in _ENDINGS:
                for job in jobs:
                    self._tell(job.key, _ENDINGS[type])
        # New jobs come last in a tick, so their owners are as the tick left them.
        for command, reply in zip(commands, result.replies, strict=True):
            if isinstance(command, Enqueue) and isinstance(reply, EnqueueResult):
                self._joined(command, reply)

    def _succeeded(self, command: Succeed, reply: Settled) -> None:
        for key in self._by_key.keys() & command.keys:
            if key not in reply.missing and key not in reply.stale:
                told = (command.said or {}).get(key, _NOTHING_SAID)
                self._tell(key, Ending(Status.COMPLETED, told.result))

    def _joined(self, command: Enqueue, reply: EnqueueResult) -> None:
        """Let the waiter of a duplicate wait for the owner, which may be finished already.

        The waiter of a folded job waits for its host.
        """
        for index, key in reply.joined.items():
            for waiter in list(self._by_key.get(command.keys[index], ())):
                self.watch(waiter, key)
                waiter.nudge()

    def _tell(self, key: int, outcome: Ending) -> None:
        """Tell those who wait for a job how it has ended, if they have not been told."""
        if waiters := [each for each in self._by_key.get(key, ()) if each.outcome is None]:
            for waiter in waiters:
                waiter.outcome = outcome
            self._line.wake(dict.fromkeys(waiters), Waiter.nudge)

    def _nudge(self, keys: Iterable[int]) -> None:
        for key in keys:
            if waiters := self._by_key.get(key):
                self._line.wake(dict.fromkeys(waiters), Waiter.nudge)

    def _forget(self, waiter: Waiter) -> None:
        if waiter.key is None:
            return
        others = self._by_key[waiter.key]
        others.discard(waiter)
        if not others:
            del self._by_key[waiter.key]
        waiter.key = None
