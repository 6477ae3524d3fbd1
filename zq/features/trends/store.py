"""What may be read of trends, whichever the store is."""

from typing import Protocol

from zq.features.trends.model import TrendAt
from zq.features.trends.model_types import TypeTrendAt


class TrendReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def trends(self, queue: str, length: int, since: int) -> list[TrendAt]:
        """The trends of a queue of one length that begin at `since` or later, in their order."""

    async def type_trends(
        self, queue: str | None, type: str | None, length: int, since: int, step: int
    ) -> list[TypeTrendAt]:
        """The trends of a type, or of all, in a queue, or in all, from those of one length.

        They are added up in steps of so many milliseconds, the first of which begins at `since`.
        """
