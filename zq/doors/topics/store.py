"""What may be read of topics, whichever the store is."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from zq.doors.topics.model import TopicPage, TopicState
from zq.doors.topics.model_jobs import HeldRecord, JobsWanted, Labels
from zq.doors.topics.model_routers import RoutersWanted, TopicRouter
from zq.model.reach import Reach

MOST_EXAMINED = 20_000
"""Records that one page passes over at most, to find those that are wanted."""


class PageWanted(NamedTuple):
    """Records behind the number `after` that none of the `nodes` has written.

    A topic without `dedupe_node` shows what they have written too. The page ends after `limit`
    records, or `most_bytes` of them, but with one at least.
    """

    after: int
    limit: int
    nodes: Sequence[str]
    most_bytes: int


class TopicReads(Protocol):
    """Each method sees one moment. What it shows of a topic that is synced is on the disk, except
    where it says otherwise.

    Records past their age are shown by none. They raise what the methods of `zq.store.api.Reads`
    raise.
    """

    async def topic(self, name: str, now: int, *, hurried: bool = False) -> TopicState | None:
        """A topic as it stands.

        A `hurried` look may show what is not on the disk yet. It is for workers, whose claims and
        settlements are checked and flushed anyway.
        """

    async def topics(
        self, prefix: str, after: str, limit: int, reach: Reach, now: int
    ) -> list[TopicState]:
        """Up to `limit` topics behind the name `after`, in the order of their names."""

    async def count(self) -> int:
        """How many topics there are."""

    async def page(
        self, name: str, wanted: PageWanted, now: int, *, awaited: bool = False
    ) -> TopicPage | None:
        """Records of a topic, None where there is no such topic.

        An `awaited` page is one that news of a tick has brought about. One append may bring about
        thousands of these, so they are never refused: they wait for each other.
        """

    async def held(self, topic: TopicState, node: str, seqs: Sequence[int]) -> list[HeldRecord]:
        """The records of a queue, among some, that a node holds. The read is a hurried one."""

    async def labels(self, topic: TopicState, keys: Sequence[int]) -> dict[int, Labels]:
        """The numbers and labels of claimed jobs in a queue, of those that have numbers there."""

    async def numbered(self, topic: TopicState, wanted: JobsWanted) -> list[int]:
        """The keys of unfinished jobs of a queue that have numbers."""

    async def router(self, name: str) -> TopicRouter | None:
        """A router as it stands."""

    async def routers(self, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
        """Routers in the order of their names, those whose ends are both within reach."""

    async def count_routers(self) -> int:
        """How many routers there are."""
