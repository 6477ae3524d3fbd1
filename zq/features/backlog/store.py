"""What a store can be asked about the backlog of queues."""

from typing import Protocol

from zq.features.backlog.model import StoredBacklog


class BacklogReads(Protocol):
    """The reads behind the backlog of queues."""

    async def backlog(self, queue: str, now: int) -> StoredBacklog:
        """The facts about a queue, from a bounded number of rows.

        A queue that never was has no jobs.
        """
