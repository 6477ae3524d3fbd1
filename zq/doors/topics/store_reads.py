"""The reads of topics: pages have a lane of their own, for their readers wait as workers do."""

from collections.abc import Sequence

from zq.doors.topics import store_jobs as topic_job_lookups
from zq.doors.topics import store_lookups as topic_lookups
from zq.doors.topics import store_routers as router_lookups
from zq.doors.topics.model import TopicPage, TopicState
from zq.doors.topics.model_jobs import HeldRecord, JobsWanted, Labels
from zq.doors.topics.model_routers import RoutersWanted, TopicRouter
from zq.doors.topics.store import PageWanted, TopicReads
from zq.model.reach import Reach
from zq.store.snapshot import SnapshotLanes


class StoredTopicReads(TopicReads):
    """Reads by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._of = lanes.steady_of
        self._looks = lanes.looks
        self._hurried = lanes.deliveries
        self._scans = lanes.scans
        self._pages = lanes.pages
        self._awaited = lanes.followers

    async def topic(self, name: str, now: int, *, hurried: bool = False) -> TopicState | None:
        read = self._hurried if hurried else self._looks
        return await read(topic_lookups.get_topic, name, self._of(now))

    async def topics(
        self, prefix: str, after: str, limit: int, reach: Reach, now: int
    ) -> list[TopicState]:
        page = (prefix, after, limit, reach, self._of(now))
        return await self._scans(topic_lookups.list_topics, *page)

    async def count(self) -> int:
        return await self._looks(topic_lookups.count_topics)

    async def page(
        self, name: str, wanted: PageWanted, now: int, *, awaited: bool = False
    ) -> TopicPage | None:
        read = self._awaited if awaited else self._pages
        return await read(topic_lookups.read_page, name, wanted, self._of(now))

    async def held(self, topic: TopicState, node: str, seqs: Sequence[int]) -> list[HeldRecord]:
        return await self._hurried(topic_job_lookups.held_records, topic, node, seqs)

    async def labels(self, topic: TopicState, keys: Sequence[int]) -> dict[int, Labels]:
        return await self._hurried(topic_job_lookups.labels_of, topic, keys)

    async def numbered(self, topic: TopicState, wanted: JobsWanted) -> list[int]:
        return await self._scans(topic_job_lookups.numbered_jobs, topic, wanted)

    async def router(self, name: str) -> TopicRouter | None:
        return await self._looks(router_lookups.get_router, name)

    async def routers(self, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
        return await self._scans(router_lookups.list_routers, wanted, reach)

    async def count_routers(self) -> int:
        return await self._looks(router_lookups.count_routers)


READS = {TopicReads: StoredTopicReads}
