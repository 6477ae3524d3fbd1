"""What may be read of the lists of unfinished jobs, whichever the store is."""

from typing import Protocol

from zq.operators.admin.model import FoundJob, JobSearch, ListsView, Sight


class ListReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def sight(self, view: ListsView) -> Sight:
        """The contents of a view of the unfinished jobs."""

    async def search(self, wanted: JobSearch) -> FoundJob:
        """The next job of a list that matches, with the window around it."""
