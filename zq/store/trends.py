"""What may be read of trends, whichever the store is."""

from typing import Protocol

from zq.model.trends import TrendAt


class TrendReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def trends(self, queue: str, length: int, since: int) -> list[TrendAt]:
        """The trends of a queue of one length that begin at `since` or later, in their order."""
