"""What may be read of trends, whichever the store is."""

from zq.features.trends.model import TrendAt, TypeTrendAt
from zq.store.snapshot import SnapshotLanes


class TrendReads:
    """The reads of trends. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def trends(self, queue: str, length: int, since: int) -> list[TrendAt]:
        """The trends of a queue of one length that begin at `since` or later, in their order."""
        asked = {"queue": queue, "length": length, "since": since}
        return await self._lanes.looks.found(TrendAt, "trends", **asked)

    async def type_trends(
        self, queue: str | None, type: str | None, length: int, since: int, step: int
    ) -> list[TypeTrendAt]:
        """The trends of a type, or of all, in a queue, or in all, from those of one length.

        They are added up in steps of so many milliseconds, the first of which begins at `since`.
        """
        asked = {"queue": queue, "type": type, "length": length, "since": since, "step": step}
        return await self._lanes.views.found(TypeTrendAt, "type_trends", **asked)


READS = (TrendReads,)

FORMS = {
    "trends": {"wait": dict[int, int], "run": dict[int, int]},
    "type_trends": {"run": dict[int, int]},
}
"""The forms of what columns hold, by table."""
