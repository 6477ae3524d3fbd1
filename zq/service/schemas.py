"""The verbs about schemas of payloads."""

import logging

from zq.engine.inbox import Inbox
from zq.model.queue_errors import InvalidSchema, SchemaNotFound
from zq.model.reach import Reach
from zq.model.schemas import DropSchema, PayloadSchema, PutSchema, StoredSchema
from zq.store.api import Store

log = logging.getLogger(__name__)


class Schemas:
    """Schemas by queue. A queue has none, or one."""

    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._reads = store.crons
        self._inbox = inbox
        self.parsed: dict[str, PayloadSchema] = {}
        """What new jobs of a queue are checked with."""

    async def start(self) -> None:
        """Read the schemas that are stored."""
        for stored in await self._reads.schemas():
            try:
                self.parsed[stored.queue] = PayloadSchema(stored.body)
            except InvalidSchema as error:
                log.error(f"jobs of {stored.queue!r} are not checked: {error}")

    async def every(self, reach: Reach) -> list[StoredSchema]:
        """The schemas of queues within reach, in the order of their names."""
        return [each for each in await self._reads.schemas() if reach.covers(each.queue)]

    async def get(self, queue: str, reach: Reach) -> StoredSchema:
        """The schema of a queue. Raises `SchemaNotFound` or `QueueOutOfReach`."""
        reach.require([queue])
        for each in await self._reads.schemas():
            if each.queue == queue:
                return each
        raise SchemaNotFound(queue)

    async def put(self, queue: str, body: str, reach: Reach) -> StoredSchema:
        """Give a queue a schema. Raises `InvalidSchema` or `QueueOutOfReach`."""
        reach.require([queue])
        parsed = PayloadSchema(body)
        stored = await self._inbox.ask(PutSchema(queue, body))
        self.parsed[queue] = parsed
        return stored

    async def drop(self, queue: str, reach: Reach) -> None:
        """Take a queue's schema away, if it has one. Raises `QueueOutOfReach`."""
        reach.require([queue])
        await self._inbox.ask(DropSchema(queue))
        self.parsed.pop(queue, None)
