"""How far claims have seen that nothing is for them: the places where their walks begin.

A paused queue's backlog, as a rule, is older than what comes to other queues, and lies before it in
the index. Whoever has walked past it once begins behind it from then on. What becomes ready before
that place afterwards is in a queue that its transaction names as woken, so only these are asked.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

from zq.model.reach import EVERYWHERE, Reach

Place = tuple[int, int]
"""The priority and the key of a job: where it stands in dispatch order."""

START: Place = (-1, -1)

MOST_STIRRED = 10_000
"""Queues that are worth asking one by one; claims for which it would be more begin at the start."""

MOST_FRONTIERS = 64
"""Reaches that are remembered: keys are many, those whose workers wait are few."""


class Frontier(NamedTuple):
    """What is known for one reach: up to `place`, only named queues have jobs that it may take."""

    place: Place = START
    stirred: frozenset[str] = frozenset()
    """Queues in which something may have become ready since."""
    held_back: frozenset[str] = frozenset()
    """Queues with a rate or a concurrency that had none to spare."""
    few: bool = False
    """Whether so few queues have ready jobs that asking each costs less than walking."""

    def stir(self, woken: set[str]) -> Self:
        """The same once something has become ready in some queues."""
        if self.place == START:
            return self
        stirred = self.stirred | woken
        return self._replace(stirred=stirred) if len(stirred) <= MOST_STIRRED else type(self)()


class Frontiers:
    """Follows what has been committed."""

    def __init__(self) -> None:
        self._known: dict[Reach, Frontier] = {}

    def of(self, reach: Reach) -> Frontier:
        """Where claims within a reach begin."""
        return self._known.get(reach, _NOWHERE)

    def learn(self, found: Mapping[Reach, Frontier], woken: set[str], *, gated: bool) -> None:
        """Follow a transaction, which has found new ones and woken queues.

        Where nothing is `gated`, only reaches with bounds have something to pass.
        """
        known = self._known
        for reach, frontier in found.items():
            known.pop(reach, None)
            if frontier != _NOWHERE:
                known[reach] = frontier
        if not gated:
            known.pop(EVERYWHERE, None)
        while len(known) > MOST_FRONTIERS:
            del known[next(iter(known))]
        if woken:
            for reach, frontier in known.items():
                known[reach] = frontier.stir(woken)


_NOWHERE = Frontier()
