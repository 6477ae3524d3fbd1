"""Whether queues with a `max_depth` have room for new jobs."""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from zq.model.commands import Enqueue
from zq.model.errors import QueueFull
from zq.model.job import NewJob
from zq.model.lifecycle import TERMINAL
from zq.store.dedupe import Name, NameTable, name_of
from zq.store.queries import load
from zq.store.work import Work, as_json

QUERIES = load("settings.sql")

_counts = msgspec.json.Decoder(list[tuple[str, int]])


class Depths:
    """The room that is left in the queues with a bound that this tick's new jobs name."""

    def __init__(self, work: Work, commands: Sequence[Enqueue]) -> None:
        self._work = work
        self._room: dict[str, int] = {}
        bounded = work.rulebook.bounded
        if bounded:
            named = {job.queue for command in commands for job in command.jobs} & bounded
            self._room = {queue: self._left(queue, n) for queue, n in self._depths(named).items()}

    def refusal(
        self, command: Enqueue, names: NameTable, is_new: Callable[[NewJob], bool]
    ) -> QueueFull | None:
        """Take the room that a command's jobs need; or the queue that has not enough.

        Copies by name and duplicates of unique keys need none; `is_new` tells of the latter.
        """
        if not self._room:
            return None
        wanted: Counter[str] = Counter()
        brought: set[Name | str] = set()
        for job in command.jobs:
            if job.dedupe is not None:
                name = name_of(job)
                if name in brought or names.find(job, command.reach) is not None:
                    continue
                brought.add(name)
            if job.unique_key is not None:
                if job.unique_key in brought or not is_new(job):
                    continue
                brought.add(job.unique_key)
            wanted[job.queue] += 1
        for queue, left in self._room.items():
            # A bound may have been lowered below what is there already.
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
        text = self._work.value(QUERIES["read_depths"], {"queues": as_json(names)})
        assert isinstance(text, str)
        depths = dict.fromkeys(names, 0) | dict(_counts.decode(text))
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
