"""One sweep: what it changes, and how far it has come."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from zq.features.budgets.commands import Binding, Bound
from zq.features.sweeps.model import SweepMark, SweepOutline, SweepPreview
from zq.model.commands import Entered
from zq.model.filters import (
    Filter,
    refuse_uncancellable,
    refuse_unchangeable,
    refuse_unrevivable,
)
from zq.model.lifecycle import Move, Status, sources
from zq.model.patching import Patch
from zq.store.api import as_json

MOST_UNTYPED = 100
"""The most jobs that may be deleted without a word that confirms it."""


class SweepChange(NamedTuple):
    """The change that a sweep makes, and the jobs that it concerns. Equal changes are the same
    request."""

    verb: str
    filter: Filter
    how: Patch | Binding | bool | None = None


class Sweep:
    """One change by filter under way. Times are in milliseconds."""

    def __init__(
        self,
        id: int,
        change: SweepChange,
        limit: int | None,
        outline: SweepOutline,
        after: "Sweep | None",
    ) -> None:
        self.id = id
        self.change = change
        self.limit = limit
        """The most jobs that it changes."""
        self.outline = outline
        self.after = after
        """An equal sweep that has to end before this one begins."""
        self.has_begun = False
        self.changed = 0
        self.blocked: list[int] = []
        """The keys of jobs that it would change if they were not in flight."""
        self.kept: Counter[str] = Counter()
        """How many jobs it has left as they were, by the reasons."""
        self.passed = 0.0
        """The part of the ids that it has passed, from 0 to 1."""
        self.is_stopped = False
        self.waiting = 0
        """How many callers wait for its end."""
        self.task: asyncio.Task[int]
        self._text = as_json(outline)

    def mark(self, passed: float) -> SweepMark:
        """The mark of a slice. `passed` is the part of the ids that the sweep has passed."""
        return SweepMark(self.id, self._text, passed)

    def add(self, done: int | Bound | Entered) -> Sequence[int]:
        """Count what a slice has done. Return the keys that it has left to the next one."""
        self.changed += done if isinstance(done, int) else done.changed
        if isinstance(done, Bound):
            self.blocked += done.blocked
        elif isinstance(done, Entered):
            self.kept.update(done.kept)
            return done.rest
        return ()


def changeable(filter: Filter) -> Filter:
    """The matching jobs that can be patched. Raises `Unprocessable` for finished ones."""
    refuse_unchangeable(filter)
    return unfinished(filter)


def unfinished(filter: Filter) -> Filter:
    """The matching jobs that wait."""
    return _among(filter, *sources(Move.PATCH))


def cancellable(filter: Filter, force: bool) -> Filter:
    """The matching jobs that can be cancelled. Raises `Unprocessable` for others."""
    refuse_uncancellable(filter, force)
    return _among(filter, *sources(Move.FORCE if force else Move.CANCEL))


def revivable(filter: Filter) -> Filter:
    """The matching jobs that can be brought back. Raises `Unprocessable` for others."""
    refuse_unrevivable(filter)
    waiting = (Status.SCHEDULED, Status.READY) if filter.queues else ()
    return _among(msgspec.structs.replace(filter, revivable=True), Status.DEAD, *waiting)


AFFECTED: dict[str, Callable[[Filter, bool], Filter]] = {
    "delete": lambda filter, _force: filter,
    "cancel": cancellable,
    "requeue": lambda filter, _force: revivable(filter),
    "patch": lambda filter, _force: changeable(filter),
}
"""The changes that can be previewed, and which of the matching jobs each of them changes."""


def word_for(verb: str, seen: SweepPreview) -> str | None:
    """The word that confirms a deletion of many jobs: the queue, or `delete` if there are several.

    None if there are so few that no word is needed, or if the change is another one.
    """
    if verb != "delete" or (seen.exact and seen.jobs <= MOST_UNTYPED):
        return None
    queues = {queue for queue, _ in seen.places}
    return queues.pop() if len(queues) == 1 else "delete"


def _among(filter: Filter, *statuses: Status) -> Filter:
    """The filter with these states, if it names none."""
    return msgspec.structs.replace(filter, statuses=filter.statuses or statuses)
