"""The groups of takers, and which of them the next tick asks for jobs."""

from collections.abc import Iterable
from itertools import islice

from zq.engine.delivery.takers import ClaimGroup, Taker
from zq.model.reach import Reach

MOST_GROUPS = 64
"""The most groups that one tick claims for. The others come next, in turn."""


class ClaimGroups:
    """All groups. A group is hungry if some taker of it waits and some queue may have jobs."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, ...] | Reach, ClaimGroup] = {}
        self._by_queue: dict[str, set[ClaimGroup]] = {}
        self._ranging: set[ClaimGroup] = set()
        self._hungry: dict[ClaimGroup, None] = {}
        self._emptied: set[str] = set()
        """Queues without jobs that could be claimed, as the claims of the present tick show."""

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def are_hungry(self) -> bool:
        """True if a tick would claim jobs for some group."""
        return bool(self._hungry)

    @property
    def is_empty(self) -> bool:
        """True if nothing is kept."""
        return not (self._groups or self._by_queue or self._ranging or self._hungry)

    def join(self, names: tuple[str, ...], reach: Reach) -> ClaimGroup:
        """The group of a new taker. Without names it takes from all queues within reach."""
        group = self._groups.get(names or reach)
        if group is None:
            group = self._groups[names or reach] = ClaimGroup(names or None, reach)
            for queue in names:
                self._by_queue.setdefault(queue, set()).add(group)
            if not names:
                self._ranging.add(group)
        group.members += 1
        return group

    def leave(self, taker: Taker) -> None:
        """Take a taker out of its group. Nothing is kept of a group without members."""
        group = taker.group
        group.waiting.pop(taker, None)
        group.members -= 1
        if not group.members:
            self._groups.pop(group.queues or group.reach, None)
            self._ranging.discard(group)
            self._hungry.pop(group, None)
            for queue in group.queues or ():
                self._by_queue[queue].discard(group)
                if not self._by_queue[queue]:
                    del self._by_queue[queue]

    def of_queue(self, queue: str) -> list[ClaimGroup]:
        """The groups that take from a queue."""
        ranging = (group for group in self._ranging if group.reach.covers(queue))
        return [*self._by_queue.get(queue, ()), *ranging]

    def wait(self, taker: Taker) -> None:
        """Let a taker wait that may have credit."""
        taker.group.waiting.setdefault(taker)
        self._consider(taker.group)

    def touch(self, queues: Iterable[str]) -> None:
        """Note that queues may have ready jobs that they did not have before."""
        for queue in queues:
            for group in self.of_queue(queue):
                group.dry = False
                if group.touched is not None:
                    group.touched.add(queue)
                self._consider(group)

    def touch_all(self) -> None:
        """Note that any queue may have ready jobs that it did not have before."""
        for group in self._groups.values():
            group.dry = False
            if group.touched is not None:
                group.touched.update(group.queues or ())
            self._consider(group)

    def next(self) -> list[ClaimGroup]:
        """The hungry groups whose turn it is."""
        return list(islice(self._hungry, MOST_GROUPS))

    def ask(self, group: ClaimGroup, *, again: bool) -> None:
        """Note that a group has had its turn. If it comes `again`, it waits behind the others."""
        del self._hungry[group]
        if again:
            self._hungry[group] = None

    def served(self, group: ClaimGroup, *, short: bool) -> None:
        """Note that a group was asked, and whether it has got fewer jobs than it could take."""
        group.dry = short
        if short or not group.waiting:
            self._hungry.pop(group, None)
        if short and group.queues is not None:
            self._emptied |= group.touched or set()
            group.touched = set()

    def all_served(self) -> None:
        """Note that all groups of a tick were served. What it has emptied is empty for all.

        A group for which nothing else was touched is not asked: thousands may name one queue.
        """
        emptied, self._emptied = self._emptied, set()
        for queue in emptied:
            for group in self._by_queue.get(queue, ()):
                if group.touched and queue in group.touched:
                    group.touched.discard(queue)
                    if not group.touched:
                        group.dry = True
                        self._hungry.pop(group, None)

    def _consider(self, group: ClaimGroup) -> None:
        if group.waiting and not group.dry:
            self._hungry.setdefault(group)
