"""The verbs about schemas of payloads. They are for doors that check what they are sent."""

from zq.engine.inbox import Inbox
from zq.model.reach import Reach
from zq.model.schemas import DropSchema, PayloadSchema, PutSchema, StoredSchema
from zq.store.api import Store


class Schemas:
    """Schemas by queue. A queue has none, or one."""

    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._reads = store.crons
        self._inbox = inbox
        self._parsed: dict[str, PayloadSchema] | None = None
        """The parsed schemas, once somebody has asked for one."""

    async def every(self, reach: Reach) -> list[StoredSchema]:
        """The schemas of queues within reach, in the order of their names."""
        return [each for each in await self._reads.schemas() if reach.covers(each.queue)]

    async def get(self, queue: str, reach: Reach) -> StoredSchema | None:
        """The schema of a queue, None if it has none. Raises `QueueOutOfReach`."""
        reach.require([queue])
        found = [each for each in await self._reads.schemas() if each.queue == queue]
        return found[0] if found else None

    async def put(self, queue: str, body: str, reach: Reach) -> StoredSchema:
        """Give a queue a schema. Raises `InvalidSchema` or `QueueOutOfReach`."""
        reach.require([queue])
        parsed = PayloadSchema(body)
        await self._known()
        stored = await self._inbox.ask(PutSchema(queue, body))
        (await self._known())[queue] = parsed
        return stored

    async def drop(self, queue: str, reach: Reach) -> None:
        """Take a queue's schema away, if it has one. Raises `QueueOutOfReach`."""
        reach.require([queue])
        await self._known()
        await self._inbox.ask(DropSchema(queue))
        (await self._known()).pop(queue, None)

    async def parsed(self, queue: str) -> PayloadSchema | None:
        """The schema of a queue to check payloads with, None if it has none."""
        return (await self._known()).get(queue)

    async def _known(self) -> dict[str, PayloadSchema]:
        if self._parsed is None:
            read = {each.queue: PayloadSchema(each.body) for each in await self._reads.schemas()}
            if self._parsed is None:
                self._parsed = read
        return self._parsed
