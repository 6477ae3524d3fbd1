"""The commands of sweeps. Slices that other commands have too are in `zq.model.commands`."""

from zq.model.commands import Command, Entered, JobsCommand, SliceMark
from zq.model.filters import Filter


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
