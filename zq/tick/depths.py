"""Limits on the depth of queues: whether the jobs of an enqueue still have room."""

from collections import Counter
from collections.abc import Callable, Sequence

from zq.model.commands import Enqueue
from zq.model.errors import QueueFull
from zq.model.job import CopyName, NewJob, name_of
from zq.model.lifecycle import TERMINAL
from zq.tick.duplicates import NameTable
from zq.tick.work import UnitOfWork


class DepthTable:
    """The queues with a limit among this tick's new jobs, and how many more jobs each may take."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Enqueue]) -> None:
        self._work = work
        self._room: dict[str, int] = {}
        if bounded := work.rulebook.bounded:
            named = {job.queue for command in commands for job in command.jobs} & bounded
            self._room = {queue: self._left(queue, n) for queue, n in self._depths(named).items()}

    def refusal(
        self, command: Enqueue, names: NameTable, is_new: Callable[[NewJob], bool]
    ) -> QueueFull | None:
        """Take the room that a command's jobs need. Return an error if a queue has too little.

        Copies by name, duplicates of unique keys and folded jobs need no room. `is_new` recognises
        the duplicates.
        """
        if not self._room or command.over_depth:
            return None
        wanted: Counter[str] = Counter()
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
            wanted[job.queue] += 1
        for queue, left in self._room.items():
            # The limit may have been lowered below the present depth.
            if wanted[queue] > max(left, 0):
                return QueueFull(queue, self._bound(queue))
        for queue in self._room:
            self._room[queue] -= wanted[queue]
        return None

    def _depths(self, queues: set[str]) -> dict[str, int]:
        """Unfinished jobs of each queue, this tick's changes included."""
        if not queues:
            return {}
        names = sorted(queues)
        depths = dict.fromkeys(names, 0) | dict(self._work.tx.table("read_depths", queues=names))
        for (queue, status), n in self._work.counts.items():
            if queue in depths and status not in TERMINAL:
                depths[queue] += n
        return depths

    def _left(self, queue: str, depth: int) -> int:
        return self._bound(queue) - depth

    def _bound(self, queue: str) -> int:
        bound = self._work.settings_of(queue).max_depth
        assert bound is not None
        return bound
