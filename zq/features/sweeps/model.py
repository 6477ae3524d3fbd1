"""Sweeps as they are stored: what was asked for, by whom, and what came of it."""

from collections import Counter
from typing import NamedTuple

import msgspec

from zq.model.commands import Command, Entered, JobsCommand, SliceMark
from zq.model.errors import Conflict, LimitReached, NotFound
from zq.model.filters import Filter
from zq.model.lifecycle import Status

MOST_SWEEPS = 10_000
"""The sweeps that the store keeps, about: the latest ones."""

MOST_REASON = 500
"""The most characters of a reason."""


class SweepAuthor(msgspec.Struct, frozen=True, omit_defaults=True):
    """The operator who asked for a sweep, and the reason, as far as these are known."""

    actor: str | None = None
    reason: str | None = None


NOBODY = SweepAuthor()
BY_SCHEDULE = SweepAuthor(reason="the schedule of cleaning")


class SweepOutline(msgspec.Struct, frozen=True, omit_defaults=True):
    """The request of a sweep. `counted` is what a preview of the same change has counted."""

    verb: str
    filter: Filter
    started_at: int
    author: SweepAuthor = NOBODY
    counted: int | None = None


class SweepPreview(NamedTuple):
    """How many jobs a sweep would change, at least. `upto` is a key of this moment."""

    jobs: int
    exact: bool
    upto: int
    places: Counter[tuple[str, Status]]
    """How many of them are in each queue and status."""
    unaffected: int | None = None
    """How many jobs match and would stay as they are, if that is known."""


class Confirmation(NamedTuple):
    """How many jobs somebody has agreed to change, and the word that was typed for it, if any."""

    jobs: int
    typed: str | None = None


class SweepMark(SliceMark, frozen=True):
    """The place of a slice in its sweep: the part of all ids that it passes, from 0 to 1.

    `outline` is JSON text.
    """

    outline: str
    passed: float


class StoredSweep(msgspec.Struct, array_like=True, frozen=True):
    """A sweep that has changed jobs. It came to its end if `passed` is 1."""

    id: int
    outline: SweepOutline
    changed: int
    passed: float
    changed_at: int
    undone: int
    """How many of the jobs that it cancelled were taken back."""


class SweepNotFound(NotFound):
    """No change by filter of this id is known."""

    code = "sweep_not_found"

    def __init__(self, text: str = "this sweep is not running") -> None:
        super().__init__(text)


class NothingToUndo(Conflict):
    """The change left nothing that can be taken back."""

    code = "nothing_to_undo"


class PreviewNeeded(Conflict):
    """The change has to be looked ahead to by a preview, and was not."""

    code = "preview_needed"


class PreviewStale(Conflict):
    """The change would no longer do what its preview has told."""

    code = "preview_stale"


class NotConfirmed(Conflict):
    """The deletion of many jobs lacks the word that confirms it."""

    code = "not_confirmed"


class TooManySweeps(LimitReached):
    """As many changes by filter are under way as there may be."""

    code = "too_many_sweeps"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} changes by filter are running already: try again when one has ended (`GET"
            " /sweeps` lists them), or raise --max-sweeps"
        )


class UndoSlice(JobsCommand[Entered], frozen=True):
    """A slice of a sweep: take back those of `keys` that the sweep `filter.swept` has cancelled.

    A job stays cancelled if another one has its unique key, if its time to live is over, or if a
    budget is gone, or if its queue does not take it.
    """

    filter: Filter
    mark: SliceMark | None = None


class EndSweep(Command[None], frozen=True):
    """Note that a sweep came to its end without another slice."""

    id: int
