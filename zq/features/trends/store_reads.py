"""The reads of trends."""

from zq.features.trends.model import TrendAt
from zq.features.trends.model_types import TypeTrendAt
from zq.features.trends.store import TrendReads
from zq.store.snapshot import SnapshotLanes


class StoredTrendReads(TrendReads):
    """The reads of trends by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def trends(self, queue: str, length: int, since: int) -> list[TrendAt]:
        asked = {"queue": queue, "length": length, "since": since}
        return await self._lanes.looks.found(TrendAt, "trends", **asked)

    async def type_trends(
        self, queue: str | None, type: str | None, length: int, since: int, step: int
    ) -> list[TypeTrendAt]:
        asked = {"queue": queue, "type": type, "length": length, "since": since, "step": step}
        return await self._lanes.views.found(TypeTrendAt, "type_trends", **asked)


READS = {TrendReads: StoredTrendReads}
