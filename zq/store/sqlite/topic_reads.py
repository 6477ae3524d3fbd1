"""The reads of topics: pages have a lane of their own, for their readers wait as workers do."""

from zq.model.reach import Reach
from zq.model.topics import TopicPage, TopicState
from zq.store.sqlite import topic_lookups
from zq.store.sqlite.readers import ReaderPool
from zq.store.topics import PageWanted, TopicReads


class SqliteTopicReads(TopicReads):
    """Reads by the connections of a pool."""

    def __init__(self, pool: ReaderPool) -> None:
        self._looks = pool.looks.read
        self._scans = pool.scans.read
        self._pages = pool.topics.read

    async def topic(self, name: str, now: int) -> TopicState | None:
        return await self._looks(topic_lookups.get_topic, name, now)

    async def topics(
        self, prefix: str, after: str, limit: int, reach: Reach, now: int
    ) -> list[TopicState]:
        return await self._scans(topic_lookups.list_topics, prefix, after, limit, reach, now)

    async def count(self) -> int:
        return await self._looks(topic_lookups.count_topics)

    async def page(self, name: str, wanted: PageWanted, now: int) -> TopicPage | None:
        return await self._pages(topic_lookups.read_page, name, wanted, now)
