"""Who waits for which job to be finished: a registry in memory, told by each tick after its commit.

Nothing here polls. A waiter is registered before its job is stored or looked at, and stays until
whoever waits lets go of it; so no end can come between, not even that of a job that is deleted with
its success.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from zq.engine.committed import Committed
from zq.model.commands import (
    Clear,
    Command,
    Delete,
    DeleteSlice,
    Enqueue,
    Enqueued,
    Fail,
    Settled,
    Succeed,
    TickResult,
)
from zq.model.job import ErrorRecord, Job
from zq.model.lifecycle import Status
from zq.model.outcome import Completion, Outcome

_NOTHING_SAID = Completion()


class Waiter:
    """One who waits for one job. `outcome` is set once the job is finished."""

    def __init__(self) -> None:
        self.key: int | None = None
        self.outcome: Outcome | None = None
        self.is_over = False
        """No more patience, or the server stops: answer with what is known."""
        self._news = asyncio.Event()

    def tell(self, outcome: Outcome) -> None:
        """The job is finished."""
        self.outcome = outcome
        self._news.set()

    def nudge(self) -> None:
        """Something has become of the job: look at it."""
        self._news.set()

    def expire(self) -> None:
        """Wait no longer."""
        self.is_over = True
        self._news.set()

    async def news(self) -> None:
        """Until there is something to look at."""
        await self._news.wait()
        self._news.clear()


class Waiters:
    """All waiters by the keys of their jobs."""

    def __init__(self) -> None:
        self._by_key: dict[int, set[Waiter]] = {}
        self._open: set[Waiter] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of anybody who has waited."""
        return not self._open and not self._by_key

    @contextmanager
    def waiter(self) -> Iterator[Waiter]:
        """A waiter for as long as the context lasts; `watch` says for which job."""
        waiter = Waiter()
        self._open.add(waiter)
        if self._closed:
            waiter.expire()
        try:
            yield waiter
        finally:
            self._open.discard(waiter)
            self._forget(waiter)

    def watch(self, waiter: Waiter, key: int) -> None:
        """Let a waiter wait for the job with this key, and no longer for another."""
        self._forget(waiter)
        waiter.key = key
        self._by_key.setdefault(key, set()).add(waiter)

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._closed = True
        for waiter in self._open:
            waiter.expire()

    def learn(self, committed: Committed) -> None:
        """Learn from a tick. It costs nothing where nobody waits."""
        if self._by_key:
            self._look(committed.tick.commands, committed.result)

    def _look(self, commands: Sequence[Command], result: TickResult) -> None:
        for command, reply in zip(commands, result.replies, strict=True):
            match command, reply:
                case Succeed(), Settled():
                    self._succeeded(command, reply)
                case Fail(), Job(status=Status.DEAD):
                    self._tell(reply.key, Outcome(Status.DEAD, error=_record(command, reply)))
                case (Delete(key=key), None):
                    self._nudge([key])
                case (DeleteSlice(keys=keys), _):
                    self._nudge(keys)
                case (Clear(), _):
                    self._nudge(list(self._by_key))
                case _:
                    pass
        for key in result.buried:
            self._tell(key, Outcome(Status.DEAD, reason=result.buried[key]))
        for key in result.cancelled:
            self._tell(key, Outcome(Status.CANCELLED))
        for key in result.expired:
            self._tell(key, Outcome(Status.EXPIRED))
        # New jobs come after all that in a tick, so that their owners are as they were left by it.
        for command, reply in zip(commands, result.replies, strict=True):
            if isinstance(command, Enqueue) and isinstance(reply, Enqueued):
                self._joined(command, reply)

    def _succeeded(self, command: Succeed, reply: Settled) -> None:
        for key in self._by_key.keys() & command.keys:
            if key not in reply.missing and key not in reply.stale:
                told = (command.said or {}).get(key, _NOTHING_SAID)
                self._tell(key, Outcome(Status.COMPLETED, told.result))

    def _joined(self, command: Enqueue, reply: Enqueued) -> None:
        """Let whoever waits for a duplicate wait for its owner, which may be finished already."""
        for index, key in reply.duplicates.items():
            for waiter in list(self._by_key.get(command.keys[index], ())):
                self.watch(waiter, key)
                waiter.nudge()

    def _tell(self, key: int, outcome: Outcome) -> None:
        for waiter in self._by_key.get(key, ()):
            waiter.tell(outcome)

    def _nudge(self, keys: Iterable[int]) -> None:
        for key in keys:
            for waiter in self._by_key.get(key, ()):
                waiter.nudge()

    def _forget(self, waiter: Waiter) -> None:
        if waiter.key is None:
            return
        others = self._by_key[waiter.key]
        others.discard(waiter)
        if not others:
            del self._by_key[waiter.key]
        waiter.key = None


def _record(command: Fail, job: Job) -> ErrorRecord:
    """The failure that a job died of."""
    assert job.dequeued_at is not None
    assert job.failed_at is not None
    failure = command.failure
    texts = (failure.message, failure.error_type, failure.backtrace)
    return ErrorRecord(job.attempts, *texts, job.dequeued_at, job.failed_at)
