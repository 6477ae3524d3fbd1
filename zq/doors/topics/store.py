"""What may be read of topics, whichever the store is."""

from collections.abc import Sequence

import msgspec

from zq.doors.topics import store_jobs as topic_job_lookups
from zq.doors.topics import store_lookups as topic_lookups
from zq.doors.topics.model import PageWanted, TopicConfig, TopicPage, TopicState, tag_begins
from zq.doors.topics.model_jobs import HeldRecord, JobsWanted, Labels
from zq.doors.topics.model_routers import RouterConfig, RoutersWanted, TopicRouter
from zq.model.reach import EVERYWHERE, Reach
from zq.store.snapshot import Snapshot, SnapshotLanes

_config = msgspec.json.Decoder(RouterConfig)


class TopicReads:
    """Each method sees one moment. What it shows of a topic that is synced is on the disk, except
    where it says otherwise.

    Records past their age are shown by none. They raise what the methods of `zq.store.api.Reads`
    raise.
    """

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._of = lanes.steady_of
        self._looks = lanes.looks
        self._hurried = lanes.deliveries
        self._scans = lanes.scans
        self._pages = lanes.pages
        self._awaited = lanes.followers

    async def topic(self, name: str, now: int, *, hurried: bool = False) -> TopicState | None:
        """A topic as it stands.

        A `hurried` look may show what is not on the disk yet. It is for workers, whose claims and
        settlements are checked and flushed anyway.
        """
        read = self._hurried if hurried else self._looks
        return await read(topic_lookups.get_topic, name, self._of(now))

    async def topics(
        self, prefix: str, after: str, limit: int, reach: Reach, now: int
    ) -> list[TopicState]:
        """Up to `limit` topics behind the name `after`, in the order of their names."""
        page = (prefix, after, limit, reach, self._of(now))
        return await self._scans(topic_lookups.list_topics, *page)

    async def count(self) -> int:
        """How many topics there are."""
        return await self._looks(topic_lookups.count_topics)

    async def page(
        self, name: str, wanted: PageWanted, now: int, *, awaited: bool = False
    ) -> TopicPage | None:
        """Records of a topic, None where there is no such topic.

        An `awaited` page is one that news of a tick has brought about. One append may bring about
        thousands of these, so they are never refused: they wait for each other.
        """
        read = self._awaited if awaited else self._pages
        return await read(topic_lookups.read_page, name, wanted, self._of(now))

    async def held(self, topic: TopicState, node: str, seqs: Sequence[int]) -> list[HeldRecord]:
        """The records of a queue, among some, that a node holds. The read is a hurried one."""
        return await self._hurried(topic_job_lookups.held_records, topic, node, seqs)

    async def labels(self, topic: TopicState, keys: Sequence[int]) -> dict[int, Labels]:
        """The numbers and labels of claimed jobs in a queue, of those that have numbers there."""
        return await self._hurried(topic_job_lookups.labels_of, topic, keys)

    async def numbered(self, topic: TopicState, wanted: JobsWanted) -> list[int]:
        """The keys of unfinished jobs of a queue that have numbers."""
        return await self._scans(topic_job_lookups.numbered_jobs, topic, wanted)

    async def router(self, name: str) -> TopicRouter | None:
        """A router as it stands."""
        return await self._looks(get_router, name)

    async def routers(self, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
        """Routers in the order of their names, those whose ends are both within reach."""
        return await self._scans(list_routers, wanted, reach)

    async def count_routers(self) -> int:
        """How many routers there are."""
        return await self._looks(count_routers)


def get_router(snapshot: Snapshot, name: str) -> TopicRouter | None:
    """A router as it stands."""
    found = snapshot.rows("router", name=name)
    return _router(*found[0]) if found else None


def count_routers(snapshot: Snapshot) -> int:
    """How many routers there are."""
    return int(snapshot.value("count_routers"))


def list_routers(snapshot: Snapshot, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
    """A page of routers by name, of those within reach."""
    found: list[TopicRouter] = []
    after = wanted.after
    while len(found) < wanted.limit:
        names = {"after": after, "limit": wanted.limit, **tag_begins(wanted.prefix)._asdict()}
        ends = {"source": wanted.source, "dest": wanted.dest}
        some = [_router(*row) for row in snapshot.rows("routers_page", **names, **ends)]
        found += [router for router in some if _is_within(reach, router)]
        if len(some) < wanted.limit:
            break
        after = some[-1].name
    return found[: wanted.limit]


def _router(name: str, config: str, forwarded: int) -> TopicRouter:
    return TopicRouter(name, _config.decode(config), forwarded)


def _is_within(reach: Reach, router: TopicRouter) -> bool:
    config = router.config
    return reach is EVERYWHERE or (reach.covers(config.source) and reach.covers(config.dest))


READS = (TopicReads,)

FORMS = {"topics": {"config": TopicConfig}, "topic_routers": {"config": RouterConfig}}
"""The forms of what columns hold, by table."""
