"""The reach of a caller: all queues, or the queues with certain prefixes."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from zq.model.errors import BudgetOutOfReach, QueueOutOfReach, QuotaReached


class NamesQueues(Protocol):
    """A job, a setting, or another value from a client that names queues or topics."""

    @property
    def queues_named(self) -> Iterable[str]:
        """Every queue and topic that the value names."""


class BudgetMaker(msgspec.Struct, frozen=True):
    """The key for which budgets are made, and how many it may have (None: the usual share)."""

    name: str
    most: int | None = None


class Reach(msgspec.Struct, frozen=True, omit_defaults=True):
    """The queues whose names begin with one of `prefixes`.

    It goes with every command and query into the engine and the store. A job out of reach is a job
    that does not exist.
    """

    prefixes: tuple[str, ...]
    maker: BudgetMaker | None = None
    """The key whose quota pays for the budgets that the caller makes; None: nobody's."""

    def covers(self, queue: str) -> bool:
        """True if a queue lies within reach."""
        return queue.startswith(self.prefixes)

    def require(self, named: Iterable[str | NamesQueues]) -> None:
        """Raise `QueueOutOfReach` for the first queue out of reach.

        `named` has names of queues and values that name some. All doors and verbs check by this.
        """
        if self is EVERYWHERE:
            return
        for each in named:
            for queue in (each,) if isinstance(each, str) else each.queues_named:
                if not self.covers(queue):
                    raise QueueOutOfReach(queue, self.prefixes)

    def require_budgets(self, made: Iterable[str]) -> None:
        """Raise `BudgetOutOfReach` for the first budget that a caller would make out of reach."""
        for key in made:
            if not self.covers(key):
                raise BudgetOutOfReach(key, self.prefixes)


EVERYWHERE = Reach(("",))
"""No limits. Hot paths compare with it by identity and skip the checks."""


def reach_of(prefixes: Iterable[str]) -> Reach:
    """The reach of some prefixes; without prefixes, everywhere. Redundant prefixes are dropped."""
    kept: list[str] = []
    for prefix in sorted(set(prefixes)):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return Reach(tuple(kept)) if kept and kept != [""] else EVERYWHERE


MOST_WITHIN_REACH = 1_000
"""The things of a kind within a caller's prefixes from which on it makes no more."""


def require_room(what: str, queues: Mapping[str, int], reach: Reach, more: int) -> None:
    """Raise `QuotaReached` unless a caller may make more of a kind.

    `queues` says how many things of that kind there are, by their queues. What a caller without
    bounds has made within the prefixes counts too.
    """
    have = sum(count for queue, count in queues.items() if reach.covers(queue))
    if more > 0 and have + more > MOST_WITHIN_REACH:
        raise QuotaReached(what, have, MOST_WITHIN_REACH)
