"""The reads of searches."""

from collections import Counter
from collections.abc import Sequence

from zq.features.search import sqlite as search
from zq.features.search.store import SearchReads, WordsFound
from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.store.sqlite.lanes import ReadLanes


class SqliteSearchReads(SearchReads):
    """The reads of searches by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def find_words(
        self, filter: Filter, after: int, descending: bool, now: int
    ) -> WordsFound:
        place = (after, descending, self._lanes.steady_of(now))
        return await self._lanes.scans(search.find_words, self._lanes.dated(filter), *place)

    async def swept_words(self, filter: Filter, after: int) -> WordsFound:
        # At time 0, no job's retention is over.
        dated = self._lanes.dated(filter)
        return await self._lanes.sweeps(search.find_words, dated, after, False, 0)

    async def places(self, keys: Sequence[int]) -> Counter[tuple[str, Status]]:
        return await self._lanes.sweeps(search.places, keys)

    async def types(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        return await self._sample("types", queue, reach, now)

    async def payload_keys(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        return await self._sample("payload_keys", queue, reach, now)

    async def _sample(self, kind: str, queue: str | None, reach: Reach, now: int) -> list[str]:
        sight = (queue, reach, self._lanes.steady_of(now))
        return await self._lanes.scans(search.sample, kind, *sight)


READS = {SearchReads: SqliteSearchReads}
