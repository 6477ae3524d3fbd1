"""Limits on the depth of queues: whether the jobs of an enqueue still have room."""

from collections import Counter
from collections.abc import Callable, Sequence, Set

from zq.model.commands import Enqueue
from zq.model.errors import QueueFull
from zq.model.job import CopyName, NewJob, name_of
from zq.model.lifecycle import TERMINAL
from zq.tick.duplicates import NameTable
from zq.tick.work import UnitOfWork


class Room:
    """The queues among the given ones that have a limit, and how many more jobs each may take."""

    def __init__(self, work: UnitOfWork, queues: Set[str]) -> None:
        self._work = work
        self.left: dict[str, int] = {}
        """How many jobs a queue has room for. Below 0, its limit was lowered below its depth."""
        if bounded := work.rulebook.bounded & queues:
            self.left = {q: self.bound(q) - depth for q, depth in depths(work, bounded).items()}

    def take(self, queue: str, jobs: int = 1) -> bool:
        """Take room for some jobs. Return False, and take none, if there is too little."""
        left = self.left.get(queue)
        if left is None:
            return True
        if jobs > max(left, 0):
            return False
        self.left[queue] = left - jobs
        return True

    def free(self, queue: str) -> None:
        """Count one unfinished job less."""
        if queue in self.left:
            self.left[queue] += 1

    def bound(self, queue: str) -> int:
        """The limit of a queue that has one."""
        bound = self._work.settings_of(queue).max_depth
        assert bound is not None
        return bound


def depths(work: UnitOfWork, queues: Set[str]) -> dict[str, int]:
    """Unfinished jobs of each queue, this tick's changes included."""
    names = sorted(queues)
    found = dict.fromkeys(names, 0) | dict(work.tx.table("read_depths", queues=names))
    for (queue, status), n in work.counts.items():
        if queue in found and status not in TERMINAL:
            found[queue] += n
    return found


class DepthTable:
    """The room that queues with a limit have for this tick's new jobs."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Enqueue]) -> None:
        named: Set[str] = frozenset()
        if work.rulebook.bounded:
            named = {job.queue for command in commands for job in command.jobs}
        self._room = Room(work, named)
        self._wanted: Counter[str] = Counter()
        """The room that the latest command needs, by queue."""

    def refusal(
        self, command: Enqueue, names: NameTable, is_new: Callable[[NewJob], bool]
    ) -> QueueFull | None:
        """Why a queue has too little room for a command's jobs. If all have enough, `take` it.

        `is_new` recognises the duplicates of unique keys.
        """
        self._wanted.clear()
        if not self._room.left or command.over_depth:
            return None
        self._count(command, names, is_new)
        for queue, left in self._room.left.items():
            if self._wanted[queue] > max(left, 0):
                return QueueFull(queue, self._room.bound(queue))
        return None

    def take(self) -> None:
        """Take the room for the command that `refusal` has just let pass."""
        for queue, jobs in self._wanted.items():
            self._room.take(queue, jobs)

    def _count(self, command: Enqueue, names: NameTable, is_new: Callable[[NewJob], bool]) -> None:
        """Count the jobs that need room: no copies by name, duplicates of keys or folded jobs."""
        brought: set[CopyName | str] = set()
        folds = () if command.plan is None else command.plan.folds
        for index, job in enumerate(command.jobs):
            if index in folds:
                continue
            if job.dedupe is not None:
                name = name_of(job)
                if name in brought or names.find(job, command.reach) is not None:
                    continue
                brought.add(name)
            if job.unique_key is not None:
                assert job.lock is not None
                if job.lock in brought or not is_new(job):
                    continue
                brought.add(job.lock)
            self._wanted[job.queue] += 1
