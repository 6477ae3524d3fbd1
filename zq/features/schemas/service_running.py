"""The verbs about schemas of payloads."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Self

from zq.engine.inbox import Inbox
from zq.engine.turns import Slices, Turns
from zq.features.schemas.model import (
    MOST_COMPARED_TOGETHER,
    DropSchema,
    InvalidSchema,
    PayloadSchema,
    PutSchema,
    SchemaMismatch,
    SchemaNotFound,
    StoredSchema,
)
from zq.features.schemas.store import SchemaReads
from zq.model.errors import TooManyCompared, ZqError
from zq.model.reach import EVERYWHERE, Reach, require_room
from zq.service.services import RunningService, Services
from zq.store.api import Store

log = logging.getLogger(__name__)


class PayloadChecks:
    """Holds the payloads of new jobs against the schemas of their queues, in slices."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The checks of a server. New jobs are held against them."""
        checks = cls(services.turns)
        services.jobs.checks.append(checks)
        services.admin.when_cleared.append(checks.schemas.clear)
        return checks

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.schemas: dict[str, PayloadSchema] = {}
        """Schemas by queue, for queues that have one."""
        self.in_use: object = self.schemas

    async def require(self, payloads: Sequence[tuple[str, str]], place: str = "jobs") -> None:
        """Raise an error unless each payload of one request, given with its queue, matches.

        Raises `TooManyCompared`, or `SchemaMismatch`, which names the `place` of the payloads and
        the index if there are several.
        """
        slices = Slices(self._turns)
        compared = 0
        for index, (queue, payload) in enumerate(payloads):
            if (schema := self.schemas.get(queue)) is None:
                continue
            try:
                for steps in schema.checking(payload):
                    compared += steps
                    if compared > MOST_COMPARED_TOGETHER:
                        raise TooManyCompared(MOST_COMPARED_TOGETHER)
                    await slices.count(steps)
            except SchemaMismatch as error:
                raise error if len(payloads) == 1 else error.about(index, place) from None


class Schemas(RunningService):
    """Schemas by queue. A queue has none, or one. `checks` learns them."""

    @classmethod
    def of(cls, services: Services) -> Self:
        schemas = cls(services.store, services.engine.inbox, services[PayloadChecks])
        services.engine.when_heard.append(schemas.look_again)
        return schemas

    def __init__(self, store: Store, inbox: Inbox, checks: PayloadChecks) -> None:
        self._reads = store.reads.of(SchemaReads)
        self._bodies: dict[str, str] = {}
        """What was parsed as it was stored."""
        self._reading: asyncio.Task[None] | None = None
        self._changes = 0
        """How often this server has changed a schema: what was read before is out of date."""
        self._inbox = inbox
        self.parsed = checks.schemas
        self._bounded = asyncio.Lock()
        """Callers with a bounded reach give schemas one after the other: they are counted."""

    async def start(self) -> None:
        """Read the schemas that are stored."""
        await self._read()

    async def stop(self) -> None:
        if self._reading is not None:
            await asyncio.wait([self._reading])

    def look_again(self) -> None:
        """Read the schemas, which other servers may have changed."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_again())

    async def _read_again(self) -> None:
        try:
            await self._read()
        except ZqError as error:
            log.warning(f"schemas of other servers could not be read: {error}")

    async def _read(self) -> None:
        changes = self._changes
        bodies = {stored.queue: stored.body for stored in await self._reads.schemas()}
        if changes != self._changes:
            return
        for queue in self.parsed.keys() - bodies.keys():
            del self.parsed[queue]
        for queue, body in bodies.items():
            if self._bodies.get(queue) != body:
                try:
                    self.parsed[queue] = PayloadSchema(body)
                except InvalidSchema as error:
                    log.error(f"jobs of {queue!r} are not checked: {error}")
        self._bodies = bodies

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
        """Give a queue a schema. Raises `InvalidSchema`, `QueueOutOfReach` or `QuotaReached`."""
        reach.require([queue])
        parsed = PayloadSchema(body)
        if reach is EVERYWHERE:
            return await self._put(queue, body, parsed)
        async with self._bounded:
            found = Counter(each.queue for each in await self._reads.schemas())
            if queue not in found:
                require_room("schemas", found, reach, 1)
            return await self._put(queue, body, parsed)

    async def _put(self, queue: str, body: str, parsed: PayloadSchema) -> StoredSchema:
        stored = await self._inbox.ask(PutSchema(queue, body))
        self._changes += 1
        self.parsed[queue] = parsed
        return stored

    async def drop(self, queue: str, reach: Reach) -> None:
        """Take a queue's schema away, if it has one. Raises `QueueOutOfReach`."""
        reach.require([queue])
        await self._inbox.ask(DropSchema(queue))
        self._changes += 1
        self.parsed.pop(queue, None)


RUNNING = (Schemas,)
