"""The reads of windows on lists of jobs."""

from zq.operators.admin import store_windows as windows
from zq.operators.admin.model import FoundJob, JobSearch, ListsView, Sight
from zq.operators.admin.store import ListReads
from zq.store.snapshot import SnapshotLanes


class StoredListReads(ListReads):
    """The reads of windows by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def sight(self, view: ListsView) -> Sight:
        sight = await self._lanes.views(windows.see, view)
        for window in sight.windows.values():
            self._lanes.shown(window.jobs)
        return sight

    async def search(self, wanted: JobSearch) -> FoundJob:
        found = await self._lanes.views(windows.search, wanted)
        self._lanes.shown(found.window.jobs)
        return found


READS = {ListReads: StoredListReads}
