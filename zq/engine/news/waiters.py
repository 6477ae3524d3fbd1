"""Who waits for which job to be finished, and who for more of the history.

Both are registries in memory that each tick tells after its commit.
Nothing here polls. A waiter is registered before its job is stored or looked at, and stays until
whoever waits lets go of it. So no end can come between, not even that of a job that is deleted with
its success.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from zq.engine.after_commit import Committed
from zq.model.clock import Clock
from zq.model.commands import (
    Clear,
    DeleteJob,
    DeleteSlice,
    Enqueue,
    EnqueueResult,
    Fail,
    Settled,
    Succeed,
)
from zq.model.events import EventType
from zq.model.job import ErrorRecord, JobRecord
from zq.model.lifecycle import Status
from zq.model.outcome import Completion, Ending

_NOTHING_SAID = Completion()
_ENDINGS = {
    EventType.CANCELLED: Ending(Status.CANCELLED),
    EventType.EXPIRED: Ending(Status.EXPIRED),
}


class Waiter:
    """One who waits for one job. `outcome` is set once the job is finished."""

    def __init__(self) -> None:
        self.key: int | None = None
        self.outcome: Ending | None = None
        self.is_over = False
        """No more patience, or the server stops: answer with what is known."""
        self._news = asyncio.Event()

    def tell(self, outcome: Ending) -> None:
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
        self.listens: Collection[int] = self._by_key
        """The jobs that somebody waits for."""
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
        """Tell those whose jobs a tick has finished."""
        commands, result = committed.tick.commands, committed.result
        for command, reply in zip(commands, result.replies, strict=True):
            match command, reply:
                case Succeed(), Settled():
                    self._succeeded(command, reply)
                case Fail(), JobRecord(status=Status.DEAD):
                    self._tell(reply.key, Ending(Status.DEAD, error=_record(command, reply)))
                case (DeleteJob(key=key), None):
                    self._nudge([key])
                case (DeleteSlice(keys=keys), _):
                    self._nudge(keys)
                case (Clear(), _):
                    self._nudge(list(self._by_key))
                case _:
                    pass
        for key in result.buried:
            self._tell(key, Ending(Status.DEAD, reason=result.buried[key]))
        for type, jobs in result.news:
            if type in _ENDINGS:
                for job in jobs:
                    self._tell(job.key, _ENDINGS[type])
        # New jobs come after all that in a tick, so that their owners are as they were left by it.
        for command, reply in zip(commands, result.replies, strict=True):
            if isinstance(command, Enqueue) and isinstance(reply, EnqueueResult):
                self._joined(command, reply)

    def _succeeded(self, command: Succeed, reply: Settled) -> None:
        for key in self._by_key.keys() & command.keys:
            if key not in reply.missing and key not in reply.stale:
                told = (command.said or {}).get(key, _NOTHING_SAID)
                self._tell(key, Ending(Status.COMPLETED, told.result))

    def _joined(self, command: Enqueue, reply: EnqueueResult) -> None:
        """Let whoever waits for a duplicate wait for its owner, which may be finished already.

        Who waits for a job that was folded waits for its host.
        """
        for index, key in reply.joined.items():
            for waiter in list(self._by_key.get(command.keys[index], ())):
                self.watch(waiter, key)
                waiter.nudge()

    def _tell(self, key: int, outcome: Ending) -> None:
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


class HistoryReaders:
    """How far the history may be read, and who waits for more of it.

    A power cut must not take back what a reader has been given, and give its numbers to other
    records: they are shown once a sync has covered them.
    """

    def __init__(self, logged: int, *, recording: bool) -> None:
        """`logged` is the last record; what is there at a start has been synced."""
        self.listens = self.recording = recording
        """Whether attempts are recorded."""
        self.readable = logged
        self._logged = logged
        self.waiting: set[asyncio.Event] = set()
        self._closed = False

    def learn(self, committed: Committed) -> None:
        """See how many records a tick has added, and whether they are on the disk."""
        self._logged = max(self._logged, committed.result.logged)
        if committed.tick.durable:
            self.synced()

    def synced(self) -> None:
        """All that was committed is on the disk."""
        if self._logged > self.readable:
            self.readable = self._logged
            self._wake()

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._closed = True
        self._wake()

    async def wait(self, after: int, wait_ms: int, clock: Clock) -> None:
        """Until there is a record behind `after`, for so long at most."""
        event = asyncio.Event()
        timer = clock.call_later(wait_ms / 1000, event.set)
        self.waiting.add(event)
        try:
            if self.readable <= after and not self._closed:
                await event.wait()
        finally:
            self.waiting.discard(event)
            timer.cancel()

    def _wake(self) -> None:
        for event in self.waiting:
            event.set()


def _record(command: Fail, job: JobRecord) -> ErrorRecord:
    """The failure that a job died of."""
    assert job.dequeued_at is not None
    assert job.failed_at is not None
    failure = command.failure
    texts = (failure.message, failure.error_type, failure.backtrace)
    return ErrorRecord(job.attempts, *texts, job.dequeued_at, job.failed_at)
