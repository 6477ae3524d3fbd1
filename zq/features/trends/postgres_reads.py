"""The reads of trends."""

import msgspec

from zq.features.trends.model import TrendAt
from zq.features.trends.model_types import TypeTrendAt
from zq.features.trends.store import TrendReads
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes

QUERIES = load(__name__)


class PostgresTrendReads(TrendReads):
    """The reads of trends by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._lanes = lanes

    async def trends(self, queue: str, length: int, since: int) -> list[TrendAt]:
        asked = {"queue": queue, "length": length, "since": since}
        found = await self._lanes.looks(rows_of, QUERIES["trends"], asked)
        return msgspec.convert(found, list[TrendAt], strict=False)

    async def type_trends(
        self, queue: str | None, type: str | None, length: int, since: int, step: int
    ) -> list[TypeTrendAt]:
        asked = {"queue": queue, "type": type, "length": length, "since": since, "step": step}
        found = await self._lanes.views(rows_of, QUERIES["type_trends"], asked)
        return msgspec.convert(found, list[TypeTrendAt], strict=False)


READS = {TrendReads: PostgresTrendReads}
