"""Fair keys for programs: the verbs of a server about them."""

from typing import Literal

from zq.client.asking import Ask
from zq.features.fair import verbs
from zq.features.fair.model import FairLimit as FairLimit
from zq.features.fair.verbs import FairKeyDocument as FairKeyDocument
from zq.features.fair.verbs import FairKeysDocument as FairKeysDocument


class ServerFairKeys:
    """The fair keys of one server's queues. A key that is not there raises a `BackendError`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def page(
        self,
        queue: str,
        order: Literal["share", "wait", "depth"] = "share",
        skip: int = 0,
        limit: int = 50,
    ) -> FairKeysDocument:
        """Up to `limit` keys of a queue with unfinished jobs, without the first `skip`."""
        query = {"order": order, "from": str(skip), "limit": str(limit)}
        return await self._ask(verbs.LIST, query=query, queue=queue)

    async def get(self, queue: str, key: str) -> FairKeyDocument:
        """One key of a queue."""
        return await self._ask(verbs.GET, queue=queue, key=key)

    async def put(self, queue: str, key: str, limit: FairLimit) -> FairLimit:
        """Set the weight and the limits of a key."""
        return await self._ask(verbs.PUT, limit, queue=queue, key=key)

    async def drop(self, queue: str, key: str) -> None:
        """Leave a key to its jobs and its queue again."""
        await self._ask(verbs.DELETE, queue=queue, key=key)
