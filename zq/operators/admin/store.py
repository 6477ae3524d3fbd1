"""What may be read of the lists of unfinished jobs, whichever the store is."""

from zq.operators.admin import store_windows as windows
from zq.operators.admin.model import FoundJob, JobSearch, ListsView, ViewContents
from zq.store.snapshot import SnapshotLanes


class ListReads:
    """The reads of the lists. They raise what the methods of `zq.store.api.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def sight(self, view: ListsView) -> ViewContents:
        """The contents of a view of the unfinished jobs."""
        sight = await self._lanes.views(windows.see, view)
        for window in sight.windows.values():
            self._lanes.shown(window.jobs)
        return sight

    async def search(self, wanted: JobSearch) -> FoundJob:
        """The next job of a list that matches, with the window around it."""
        found = await self._lanes.views(windows.search, wanted)
        self._lanes.shown(found.window.jobs)
        return found


READS = (ListReads,)
