"""What became of the jobs of each queue since somebody began to count, and which queues ticks have
changed since somebody looked last."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from zq.engine.after_commit import Committed
from zq.model.commands import Clear, Command, DeleteSlice, Enqueue, EnqueueResult, Fail
from zq.model.events import EventType
from zq.model.job import JobRecord
from zq.model.lifecycle import Status

MOST_COUNTED = 1_000
"""How many queues are counted by name. What is shown must not grow with the queues."""

REST = "*"
"""Stands for all other queues. No queue can have this name."""


class Nacks(msgspec.Struct):
    """Reported failures by queue, and by what they led to."""

    retry: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    dlq: Counter[str] = msgspec.field(default_factory=Counter)


class QueueTallies:
    """Totals by queue. They cost nothing until somebody begins to count."""

    def __init__(self) -> None:
        self.listens = False
        self.enqueued: Counter[str] = Counter()
        """Accepted jobs, also those that refreshed another one."""
        self.delivered: Counter[str] = Counter()
        self.completed: Counter[str] = Counter()
        self.nacks = Nacks()
        self.revived: Counter[str] = Counter()
        self.expired: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()
        """Jobs that a sweep of one queue has deleted."""
        self.replayed: Counter[str] = Counter()
        self._known: set[str] = set()

    def begin(self) -> None:
        """Count from now on."""
        self.listens = True

    def learn(self, committed: Committed) -> None:
        result = committed.result
        for command, reply in zip(committed.tick.commands, result.replies, strict=True):
            self._count_reply(command, reply)
        for kind, counts in result.traffic:
            if kind != "failed":
                self._add(getattr(self, kind), counts)
        for type, jobs in result.news:
            if type is EventType.EXPIRED:
                self._add(self.expired, Counter([job.queue for job in jobs]))
            elif type is EventType.ENQUEUED:
                # Jobs that fail at once in a dead-letter queue are no messages that came back.
                back = [job for job in jobs if isinstance(job, JobRecord) and not _is_moved(job)]
                self._add(self.revived, Counter([job.queue for job in back]))

    def count_replayed(self, queue: str, copies: int) -> None:
        """Count jobs that came once more."""
        if self.listens:
            self._add(self.replayed, {queue: copies})

    def _count_reply(self, command: Command[object], reply: object) -> None:
        if isinstance(command, Enqueue) and isinstance(reply, EnqueueResult):
            self._add(self.enqueued, _by_queue(job.queue for job in command.jobs))
        elif isinstance(command, Fail) and isinstance(reply, JobRecord):
            if _is_moved(reply):
                assert reply.extras is not None
                self._add(self.nacks.dlq, {reply.extras.origin or reply.queue: 1})
            else:
                is_dead = reply.status is Status.DEAD
                self._add(self.nacks.failed if is_dead else self.nacks.retry, {reply.queue: 1})
        elif isinstance(command, DeleteSlice) and isinstance(reply, int):
            queues = command.filter.queues
            self._add(self.deleted, {queues[0] if len(queues) == 1 else REST: reply})

    def _add(self, counter: Counter[str], more: "Counter[str] | dict[str, int]") -> None:
        for queue, n in more.items():
            counter[self._label(queue)] += n

    def _label(self, queue: str) -> str:
        if queue not in self._known:
            if len(self._known) >= MOST_COUNTED:
                return REST
            self._known.add(queue)
        return queue


def _by_queue(queues: Iterable[str]) -> Counter[str]:
    return Counter(list(queues))


def _is_moved(job: JobRecord) -> bool:
    """True if a job has just come to a dead-letter queue."""
    return job.extras is not None and job.extras.origin is not None and job.status is Status.READY


MOST_CHANGED = 10_000
"""With more changed queues than this, all count as changed."""


class QueueChanges:
    """The changed queues. Nothing is remembered, and nothing costs anything, until the first look.

    A queue has changed if its numbers of jobs are others, or if other jobs of it may be claimed.
    """

    def __init__(self) -> None:
        self.listens = False
        self._names: set[str] = set()

    def learn(self, committed: Committed) -> None:
        result = committed.result
        self._names |= result.counted
        self._names |= result.woken
        cleared = Clear in map(type, committed.tick.commands)
        if cleared or result.misfits or len(self._names) > MOST_CHANGED:
            self.forget()

    def take(self) -> set[str] | None:
        """The queues that have changed since the last call; None if all of them may have."""
        names = self._names if self.listens else None
        self.listens, self._names = True, set()
        return names

    def forget(self) -> None:
        """Remember nothing until the next call of `take`, for which all queues have changed."""
        self.listens, self._names = False, set()
