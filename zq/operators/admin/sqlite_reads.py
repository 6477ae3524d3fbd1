"""The reads of windows on lists of jobs."""

from zq.operators.admin import sqlite as windows
from zq.operators.admin.model import FoundJob, JobSearch, ListsView, Sight
from zq.operators.admin.store import ListReads
from zq.store.sqlite.lanes import ReadLanes


class SqliteListReads(ListReads):
    """The reads of windows by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
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


READS = {ListReads: SqliteListReads}
